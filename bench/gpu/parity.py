"""Random checkpoints by both mask rules: the CPU's frames, for vLLM on a GPU to be held to.

    python -m bench.gpu.parity FOLDER [--checkpoints 2]      solves on the CPU and writes FOLDER
    python bench/gpu_engine.py --stages parity --parity FOLDER/0-anchored

Windows of 24 tokens, so that the rules differ, and heads of the size that our attention takes. The
jobs are of every kind of sampling; they are solved by the PyTorch engine in float32 with the
plugin's draws.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec
import torch
from dg_engine.job import CanvasJob, Frame, Judge, JudgeKind, MaskRule, Role, Rule, Stop, StopKind
from dg_engine.loader import load
from dg_engine.prefix_cache import PrefixCache
from dg_engine.solver import Solver
from dg_engine.tokenizer import Tokenizer
from dg_engine.vllm_engine import VllmEngine, VllmOptions
from dg_engine.vllm_plugin.draws import HashedDraws

from bench.gpu.report import Report

CPU = torch.device("cpu")
SOLVED = "solved.json"
MEMORY, CACHE_BYTES = 0.05, 1 << 28
"""Share of the GPU's memory that must be free, and what is taken for keys and values."""
HOLES = bytes([Role.HOLE] * 8 + [Role.PIN] * 8)
OPEN: dict[str, Any] = {"canvas": [0] * 16, "roles": bytes(16)}
JOBS: dict[str, dict[str, Any]] = {
    "plain": OPEN,
    "plain, by entropy": {**OPEN, "rule": Rule.ENTROPY_BOUND, "max_steps": 8},
    "pinned": {},
    "pinned, by entropy": {"rule": Rule.ENTROPY_BOUND, "max_steps": 6, "entropy_bound": 1.0},
    "seeded": {
        "canvas": list(range(40, 56)),
        "roles": bytes([Role.PIN] * 2 + [Role.SEED] * 4 + [Role.HOLE] * 6 + [Role.PIN] * 4),
        "keep_seed_steps": 2,
    },
    "narrow": {"canvas": [0, 0, 70], "roles": bytes([0, 0, 2])},
    "one line": {"single_line": True, "stop": Stop(StopKind.FIRST_LINE), "may_end": False},
    "two blocks": {**OPEN, "blocks": 2, "may_end": False},
    "raced widths, judged causally": {
        "canvas": [0, *range(60, 75)],
        "roles": bytes([0] + [2] * 15),
        "widths": [1, 2, 5],
        "alternatives": 3,
        "judge": Judge(JudgeKind.CAUSAL, tail=[70, 71, 72]),
    },
}


class Case(msgspec.Struct, frozen=True):
    """A job and the CPU's frames."""

    job: CanvasJob
    frames: list[Frame]


def jobs() -> list[CanvasJob]:
    """Every kind behind three prompts, shorter and longer than the window."""
    found: list[CanvasJob] = []
    for length in (9, 40, 110):
        for number, (name, fields) in enumerate(JOBS.items()):
            values: dict[str, Any] = {
                "canvas": [0] * 8 + list(range(60, 68)), "roles": HOLES, "rule": Rule.TOP_K,
                "max_steps": 5, "seed": 10 * length + number,
            }  # fmt: skip
            prompt = [20 + (7 * n + number) % 200 for n in range(length)]
            found.append(CanvasJob(f"{name}, {length}", prompt, **{**values, **fields}))
    return found


def write(folder: Path, seed: int, rule: MaskRule) -> None:
    """A checkpoint and what the CPU makes of the jobs."""
    from safetensors.torch import load_file, save_file

    from tests.checkpoints import write_checkpoint

    folder.mkdir(parents=True)
    write_checkpoint(
        folder, seed=seed, num_experts=4, top_k_experts=2, sliding_window=24, head_dim=64,
        global_head_dim=64, num_global_key_value_heads=2,
    )  # fmt: skip
    weights = load_file(folder / "model.safetensors")
    for name in list(weights):
        if name.startswith("model.encoder") and name.endswith("layer_scalar"):
            same = name.replace("model.encoder.language_model", "model.decoder")
            weights[name] = weights[same].clone()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    loaded = load(folder, device=CPU, dtype=torch.float32, mask_rule=rule)
    base = loaded.solver
    solver = Solver(
        base.model,
        eos=base.eos,
        line_breaks=base.line_breaks,
        special=Tokenizer(folder).special_ids,
        cache=PrefixCache(2**20),
        draws=lambda seeds: HashedDraws(seeds, loaded.config.vocab_size, CPU),
    )
    with torch.inference_mode():
        solved = [
            Case(job, [frame for frame in solver.run(job, solver.clock()) if frame is not None])
            for job in jobs()
        ]
    (folder / SOLVED).write_bytes(msgspec.json.encode(solved))


async def compare(folder: Path, rehearse: bool, report: Report) -> None:
    """How many frames are the CPU's, step by step, and how far their entropies are from them."""
    rule = MaskRule(folder.name.partition("-")[2])
    solved = msgspec.json.decode((folder / SOLVED).read_bytes(), type=list[Case])
    # vLLM's CPU has other backends.
    options = VllmOptions(
        dtype="float32", max_model_len=256, max_num_seqs=8, enforce_eager=True, mask_rule=rule,
        attention_backend=None if rehearse else "CUSTOM", gpu_memory_utilization=MEMORY,
        extra={} if rehearse else {"kv_cache_memory_bytes": CACHE_BYTES},
    )  # fmt: skip
    engine = await VllmEngine.start(folder, options)
    try:
        frames = equal = answers = 0
        furthest = 0.0
        for case in solved:
            found = [frame async for frame in engine.submit(case.job)]
            answers += found[-1].ids == case.frames[-1].ids
            frames += len(case.frames)
            for mine, theirs in zip(case.frames, found, strict=False):
                if mine.ids != theirs.ids:
                    break
                equal += 1
                pairs = zip(mine.entropy, theirs.entropy, strict=False)
                furthest = max([furthest, *(abs(one - other) for one, other in pairs)])
        report.tell(
            f"  {folder.name}: {answers} of {len(solved)} answers and {equal} of {frames} frames "
            f"are the CPU's; entropies of those differ by {furthest:.1e} nats at most"
        )
    finally:
        await engine.close()


def main() -> None:
    """Write the checkpoints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoints", type=int, default=2)
    options = parser.parse_args()
    for seed in range(options.checkpoints):
        for rule in MaskRule:
            write(options.folder / f"{seed}-{rule}", seed, rule)


if __name__ == "__main__":
    main()
