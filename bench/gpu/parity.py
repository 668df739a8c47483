"""Random checkpoints by both mask rules: the CPU's frames, for vLLM on a GPU to be held to.

    python -m bench.gpu.parity FOLDER [--checkpoints 32]     solves on the CPU and writes FOLDER
    python bench/gpu_engine.py --stages parity-anchored parity-symmetric --parity FOLDER
    python -m bench.gpu.parity FOLDER --rounded              what bfloat16 alone changes, on the CPU

Windows of 24 tokens, so that the rules differ, and heads of the size that our attention takes. The
jobs are of every kind of sampling; they are solved by the PyTorch engine in float32 with the
plugin's draws. Weights are numbers that bfloat16 holds, so that a GPU in bfloat16 has the same
ones. One engine takes the weights of every checkpoint in turn.
"""

from __future__ import annotations

import argparse
import asyncio
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
WORKER = "bench.gpu.worker.GpuWorker"
DTYPES = {"": "float32", "bf16": "bfloat16"}
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


def solved_by(folder: Path, rule: MaskRule) -> Path:
    """Where the CPU's frames are."""
    return folder / f"solved-{rule}.json"


def write(folder: Path, seed: int) -> None:
    """A checkpoint and what the CPU makes of the jobs by each rule."""
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
    weights = {name: tensor.bfloat16() for name, tensor in weights.items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    for rule in MaskRule:
        solved = [Case(*one) for one in solve(folder, rule, torch.float32)]
        solved_by(folder, rule).write_bytes(msgspec.json.encode(solved))


def solve(
    folder: Path, rule: MaskRule, dtype: torch.dtype
) -> list[tuple[CanvasJob, list[Frame]]]:  # fmt: skip
    """Every job with the CPU's frames."""
    loaded = load(folder, device=CPU, dtype=dtype, mask_rule=rule)
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
        return [
            (job, [frame for frame in solver.run(job, solver.clock()) if frame is not None])
            for job in jobs()
        ]


def checkpoints_in(folder: Path) -> list[Path]:
    """By seed."""
    return sorted(folder.iterdir(), key=lambda path: int(path.name))


class Agreement(msgspec.Struct):
    """Of one checkpoint, or of several."""

    jobs: int = 0
    answers: int = 0
    """Jobs whose answer is the CPU's."""
    frames: int = 0
    equal: int = 0
    """Frames that are the CPU's, as are all before them in their job."""
    furthest: float = 0.0
    """Greatest difference between entropies of equal frames, nats."""
    parted: list[float] = []
    """Of jobs that part from the CPU's: how sure the CPU was of the position that came out
    otherwise, as its entropy, nats."""

    def add(self, case: Case, found: list[Frame]) -> None:
        """Compare one job."""
        self.jobs += 1
        self.answers += found[-1].ids == case.frames[-1].ids
        self.frames += len(case.frames)
        for mine, theirs in zip(case.frames, found, strict=False):
            if mine.ids != theirs.ids:
                differ = [
                    entropy
                    for one, other, entropy in zip(mine.ids, theirs.ids, mine.entropy, strict=False)
                    if one != other
                ]
                self.parted.append(max(differ, default=0.0))
                break
            self.equal += 1
            pairs = zip(mine.entropy, theirs.entropy, strict=False)
            self.furthest = max([self.furthest, *(abs(one - other) for one, other in pairs)])

    def join(self, other: Agreement) -> None:
        """Take another's counts in."""
        self.jobs += other.jobs
        self.answers += other.answers
        self.frames += other.frames
        self.equal += other.equal
        self.furthest = max(self.furthest, other.furthest)
        self.parted += other.parted


async def compare(folder: Path, stage: str, rehearse: bool, report: Report) -> None:
    """How many frames are the CPU's, step by step, and how far their entropies are from them.

    `stage` is the rule's name, and `-bf16` behind it where the GPU computes in that.
    """
    name, _, dtype = stage.partition("-")
    rule = MaskRule(name)
    checkpoints = checkpoints_in(folder)
    # vLLM's CPU has other backends, and turns weights into a form of its own as it loads them.
    if rehearse:
        checkpoints = checkpoints[:1]
    options = VllmOptions(
        dtype=DTYPES[dtype], max_model_len=256, max_num_seqs=8, enforce_eager=True, mask_rule=rule,
        attention_backend=None if rehearse else "CUSTOM", gpu_memory_utilization=MEMORY,
        extra={"worker_extension_cls": WORKER}
        | ({} if rehearse else {"kv_cache_memory_bytes": CACHE_BYTES}),
    )  # fmt: skip
    engine = await VllmEngine.start(checkpoints[0], options)
    total, whole = Agreement(), 0
    try:
        for checkpoint in checkpoints:
            if checkpoint is not checkpoints[0]:
                await engine.llm.collective_rpc("take_weights", args=(str(checkpoint),))
                await engine.llm.reset_prefix_cache()
            agreed = await compare_one(engine, checkpoint, rule)
            whole += agreed.equal == agreed.frames
            total.join(agreed)
    finally:
        await engine.close()
    for line in told(f"{rule}, {options.dtype}", len(checkpoints), whole, total):
        report.tell(line)


def told(name: str, checkpoints: int, whole: int, total: Agreement) -> list[str]:
    """Lines on all checkpoints, of which `whole` have no frame but the CPU's."""
    lines = [
        f"  {name}: {checkpoints} checkpoints, {whole} of them wholly the "
        f"CPU's; {total.answers} of {total.jobs} answers and {total.equal} of {total.frames} "
        f"frames are; entropies of those differ by {total.furthest:.1e} nats at most"
    ]
    if total.parted:
        unsure = sorted(total.parted)
        lines.append(
            f"    {len(unsure)} jobs part from the CPU's where its entropy is {unsure[0]:.3f} to "
            f"{unsure[-1]:.3f} nats, {unsure[len(unsure) // 2]:.3f} in the middle"
        )
    return lines


def rounded(folder: Path, rule: MaskRule) -> list[str]:
    """How many of its own frames the CPU gives again in bfloat16."""
    total, whole, checkpoints = Agreement(), 0, checkpoints_in(folder)
    for checkpoint in checkpoints:
        cases = msgspec.json.decode(solved_by(checkpoint, rule).read_bytes(), type=list[Case])
        agreed = Agreement()
        for case, (_, frames) in zip(
            cases, solve(checkpoint, rule, torch.bfloat16), strict=True
        ):  # fmt: skip
            agreed.add(case, frames)
        whole += agreed.equal == agreed.frames
        total.join(agreed)
    return told(f"{rule}, bfloat16 on the CPU", len(checkpoints), whole, total)


async def compare_one(engine: VllmEngine, checkpoint: Path, rule: MaskRule) -> Agreement:
    """All jobs of one checkpoint, as many at once as the engine takes."""
    solved = msgspec.json.decode(solved_by(checkpoint, rule).read_bytes(), type=list[Case])

    async def frames_of(case: Case) -> list[Frame]:
        return [frame async for frame in engine.submit(case.job)]

    found = await asyncio.gather(*map(frames_of, solved))
    agreed = Agreement()
    for case, frames in zip(solved, found, strict=True):
        agreed.add(case, frames)
    return agreed


def main() -> None:
    """Write the checkpoints, or solve theirs again."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoints", type=int, default=32)
    parser.add_argument("--rounded", action="store_true", help="solve again in bfloat16")
    options = parser.parse_args()
    if options.rounded:
        for rule in MaskRule:
            print("\n".join(rounded(options.folder, rule)), flush=True)
        return
    for seed in range(options.checkpoints):
        write(options.folder / str(seed), seed)


if __name__ == "__main__":
    main()
