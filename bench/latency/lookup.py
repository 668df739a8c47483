"""What guesses from the prompt save in the causal line: `python -m bench.latency.lookup`.

The causal line of held-out holes with guesses of several lengths, one after the other for each
hole, so that a busy machine slows all alike. Writes bench/results/lookup.md.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch
from dg_engine import causal
from dg_engine.job import CanvasJob, Frame
from dg_engine.loader import Loaded, load
from dg_engine.models import find_model
from dg_engine.tokenizer import Tokenizer
from dg_engine.torch_engine import TorchEngine
from dg_lsp.bench.cases import Subject, case_of
from dg_lsp.bench.holes import holes_of
from dg_lsp.bench.machine import machine
from dg_lsp.prompts import prompt_format_for

RESULT = Path(__file__).resolve().parents[1] / "results/lookup.md"
GUESSES = (0, 1, 2, 4, 6, 8)
ALWAYS = -1e9


class Run(NamedTuple):
    """One causal line."""

    ids: list[int]
    forwards: int
    ms: float


def line(loaded: Loaded, job: CanvasJob, guessed: int) -> Run:
    """The causal line with guesses of so many tokens."""
    causal.GUESSED_TOKENS = guessed
    last: Frame | None = None
    with torch.inference_mode():
        for frame in loaded.solver.run(job, loaded.solver.clock()):
            last = frame or last
    assert last is not None
    return Run(last.ids[0], last.forwards, last.ms.get("causal", 0.0))


def measure(model: str | None, count: int, threads: int) -> tuple[str, dict[int, list[Run]]]:
    """Every guess length on every hole, in turn."""
    torch.set_num_threads(threads)
    folder = find_model(model)
    loaded, tokenizer = load(folder), Tokenizer(folder)
    prompts = prompt_format_for(tokenizer, folder)
    settings = prompts.settings.within(loaded.info.canvas_length)
    subject = Subject(
        TorchEngine(loaded), tokenizer, prompts, settings, loaded.info.canvas_length, {}
    )
    runs: dict[int, list[Run]] = {guessed: [] for guessed in GUESSES}
    for number, hole in enumerate(holes_of(["line", "rest"], (count + 9) // 2)):
        job = case_of(hole, subject).job
        job = msgspec.structs.replace(job, causal_candidate=True, causal_sure=ALWAYS)
        line(loaded, job, 0)  # so that the prompt is cached for all
        for guessed in GUESSES:
            run = line(loaded, job, guessed)
            if number >= 8:  # the first ones warm the process up
                runs[guessed].append(run)
    return f"{loaded.info.model}, {loaded.info.dtype}, {threads} threads", runs


def report(what: str, runs: dict[int, list[Run]]) -> str:
    """The guess lengths side by side."""
    plain = runs[0]
    rows = "".join(
        f"| {guessed} | {statistics.mean(r.forwards for r in found):.2f} "
        f"| {statistics.median(r.ms for r in found):.0f} "
        f"| {sum(r.ms for r in found) / sum(r.ms for r in plain):.2f} "
        f"| {sum(r.ids == p.ids for r, p in zip(found, plain, strict=True))} |\n"
        for guessed, found in runs.items()
    )
    return (
        "# Guesses from the prompt in the causal line\n\n"
        f"`python -m bench.latency.lookup --count {len(plain)}`: {len(plain)} held-out holes (half "
        f"lines, half rests), the causal line alone, {what}; {machine()}. For each hole all rows "
        "run one after the other; other work ran beside it, so read the ratios.\n\n"
        "| guessed tokens | forwards | median ms | time of all, against none | same line |\n"
        f"|---|---|---|---|---|\n{rows}"
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    options.out.write_text(report(*measure(options.model, options.count, options.threads)), "utf-8")


if __name__ == "__main__":
    main()
