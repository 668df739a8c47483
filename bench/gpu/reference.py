"""Answers of dg-tiny on the CPU, for a GPU to be compared with: `python -m bench.gpu.reference`.

The jobs are the server's own for held-out lines, and the holes solved at their known length. They
are solved by the PyTorch engine in float32 with vLLM's mask rule and the plugin's draws, and
written with their frames, so that comparing needs neither the server nor a tokenizer.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import msgspec
import torch
from dg_engine.job import CanvasJob, MaskRule
from dg_engine.loader import Loaded, load
from dg_engine.models import find_model
from dg_engine.prefix_cache import PrefixCache
from dg_engine.solver import Solver
from dg_engine.tokenizer import Tokenizer
from dg_engine.torch_engine import TorchEngine
from dg_engine.vllm_plugin.draws import HashedDraws
from dg_lsp.bench.cases import Subject, case_of
from dg_lsp.bench.holes import HOLES, read_holes
from dg_lsp.bench.methods import causal_alone, known_length
from dg_lsp.prompts import prompt_format_for

from bench.gpu.solved import FILE, Reference, Solved, weights_of

CPU = torch.device("cpu")
LEAST = -1e9
"""Nats per token; every line is surer."""


def solver_of(loaded: Loaded) -> Solver:
    """A solver on the same weights that draws as the plugin does."""
    base, config = loaded.solver, loaded.config
    tokenizer = Tokenizer(find_model(None))
    return Solver(
        base.model,
        eos=base.eos,
        line_breaks=base.line_breaks,
        special=tokenizer.special_ids,
        cache=PrefixCache(2**26),
        draws=lambda seeds: HashedDraws(seeds, config.vocab_size, CPU),
    )


def jobs(loaded: Loaded, count: int) -> list[tuple[str, CanvasJob]]:
    """Held-out lines, each asked in three ways; no deadline, since that is the machine's matter."""
    folder = find_model(None)
    tokenizer = Tokenizer(folder)
    prompts = prompt_format_for(tokenizer, folder)
    settings = prompts.settings.within(loaded.config.canvas_length)
    subject = Subject(
        TorchEngine(loaded), tokenizer, prompts, settings, loaded.config.canvas_length, {}
    )
    holes = read_holes(HOLES, None)
    random.Random(0).shuffle(holes)
    found: list[tuple[str, CanvasJob]] = []
    for hole in holes[:count]:
        case = case_of(hole, subject)
        for kind, job in (
            ("known length, 4 steps", known_length(4)(case)),
            ("greedy line", causal_alone(case)),
            ("as the server asks", case.job),
        ):
            name = f"{hole.id} {kind}"
            # JSON has no infinity: it would come back as None, which asks for something else.
            sure = None if job.causal_sure is None else max(job.causal_sure, LEAST)
            kept = msgspec.structs.replace(job, id=name, seed=1, deadline_ms=None, causal_sure=sure)
            found.append((kind, kept))
    return found


def solve(loaded: Loaded, count: int) -> list[Solved]:
    """The jobs of so many held-out lines with the frames of these weights."""
    solver = solver_of(loaded)
    solved: list[Solved] = []
    with torch.inference_mode():
        for kind, job in jobs(loaded, count):
            frames = [frame for frame in solver.run(job, solver.clock()) if frame is not None]
            kept = [msgspec.structs.replace(frame, ms={}) for frame in frames]
            solved.append(Solved(kind, job, kept))
    return solved


def main() -> None:
    """Write the reference file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="held-out lines")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    loaded = load(
        find_model(None), device=CPU, dtype=torch.float32, mask_rule=MaskRule.SYMMETRIC
    )  # fmt: skip
    reference = Reference(weights_of(find_model(None)), solve(loaded, options.count))
    options.out.write_bytes(msgspec.json.encode(reference))


if __name__ == "__main__":
    main()
