"""What single parts of a denoise step are worth: `python -m bench.ablations`.

One thing is changed at a time, all on the same held-out holes and seeds, in one process: self-
conditioning on the likeliest tokens alone, what pins are conditioned on, the mask rule of sliding
layers, and the number of steps. Writes bench/results/ablations.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import enum
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch
from dg_engine.job import MaskRule
from dg_engine.lists import floats
from dg_engine.loader import CACHE_BYTES, SPARE_TOKENS, Loaded, load
from dg_engine.model import DenoiserModel
from dg_engine.models import find_model
from dg_engine.prefix_cache import PrefixCache
from dg_engine.solver import Conditioning, PinConditioning
from dg_engine.tokenizer import Tokenizer
from dg_engine.torch_engine import TorchEngine
from dg_kernels.reference import full_soft_embedding, truncation
from dg_lsp.bench.cases import Subject, ask, case_of
from dg_lsp.bench.drive import fingerprint
from dg_lsp.bench.holes import Hole, holes_of
from dg_lsp.bench.methods import known_length, raced, solved
from dg_lsp.bench.outcome import outcome_of
from dg_lsp.prompts import prompt_format_for
from torch import Tensor

from bench.ablation_tables import Loss, Record, Section, page

RESULT = Path(__file__).resolve().parent / "results/ablations.md"
TOP_K = (4, 8, 16, 64)
NARROW = 256
"""The window in which the mask rules are compared. It is to a canvas of 64 what the published 1,024
is to a canvas of 256; in dg-tiny's own, no prompt of the server's passes it."""

METHODS = {
    "known length, 8 steps": solved(known_length(8)),
    "default": solved(lambda case: case.job),
    "known length, 4 steps": solved(known_length(4)),
    "known length, 16 steps": solved(known_length(16)),
    "4 widths, 4 steps": solved(raced(4, 4)),
    "4 widths, 16 steps": solved(raced(4, 16)),
}


class Signal(enum.StrEnum):
    """How the soft embeddings are made."""

    PLAIN = "plain"
    """By the model, in its own precision."""
    WIDE = "float32"
    """The same sum in float32: nothing but rounding differs."""
    NONE = "none"
    """Not at all."""


class Variant(NamedTuple):
    """An engine that differs from the default in what is named."""

    conditioning: Conditioning = Conditioning()
    mask_rule: MaskRule = MaskRule.ANCHORED
    window: int | None = None
    """Sliding window in place of the model's own."""
    signal: Signal = Signal.PLAIN


class Run(NamedTuple):
    """A row of a table: which engine fills holes by which method."""

    variant: Variant
    method: str


class Question(NamedTuple):
    """What is compared: in each part every row with the first."""

    title: str
    note: str
    parts: dict[str, dict[str, Run]]
    losses: bool = False
    """Whether it is told what the likeliest tokens leave out."""
    holes: int = 100
    """Of each kind."""
    only: str | None = None
    """The one kind of hole that counts; all where None."""

    def section(self, parts: dict[str, dict[str, list[Record]]]) -> Section:
        """The question with what was found."""
        return Section(self.title, self.note, parts, self.losses)


EVERY = Variant()
WIDE = Variant(signal=Signal.WIDE)
NOTHING = Variant(Conditioning(pins=PinConditioning.ZERO), signal=Signal.NONE)
PINS = Variant(Conditioning(pins=PinConditioning.ZERO))
NARROWED = Variant(window=NARROW)
SYMMETRIC = Variant(mask_rule=MaskRule.SYMMETRIC, window=NARROW)

QUESTIONS = {
    "top-k": Question(
        "Self-conditioning on the k likeliest tokens",
        "The next step sees the mean embedding of the k likeliest tokens of each free position, "
        "their probabilities renormalised, instead of the sum over all 8,192. To judge by: "
        "`full sum in float32` differs by rounding alone, `nothing` has no self-conditioning at "
        "all, neither at pins.",
        {
            method: {
                "full sum": Run(EVERY, method),
                "full sum in float32": Run(WIDE, method),
                **{f"k = {k}": Run(Variant(Conditioning(top_k=k)), method) for k in TOP_K},
                "nothing": Run(NOTHING, method),
            }
            for method in ("known length, 8 steps", "default")
        },
        losses=True,
    ),
    "pins": Question(
        "Pins conditioned on their own token, or on nothing",
        "",
        {
            method: {"one-hot": Run(EVERY, method), "zero": Run(PINS, method)}
            for method in ("known length, 8 steps", "default")
        },
    ),
    "mask": Question(
        "Sliding layers: the mask anchored to the canvas, or symmetric around each position",
        f"Both engines with a window of {NARROW} instead of the model's 1,024. With its own window "
        "the two rules are the same mask wherever prompt and canvas together fit 1,024 positions, "
        "which all lines and blocks of the server do.",
        {
            method: {"anchored": Run(NARROWED, method), "symmetric": Run(SYMMETRIC, method)}
            for method in ("known length, 8 steps", "default")
        },
    ),
    "steps": Question(
        "Whole lines in 4 forwards against 16",
        "A step is one forward over the canvas. Rests of lines do not count here.",
        {
            "known length": {
                "16 steps": Run(EVERY, "known length, 16 steps"),
                "4 steps": Run(EVERY, "known length, 4 steps"),
            },
            "4 widths": {
                "16 steps": Run(EVERY, "4 widths, 16 steps"),
                "4 steps": Run(EVERY, "4 widths, 4 steps"),
            },
        },
        holes=250,
        only="line",
    ),
}
MEASURED = Run(EVERY, "known length, 8 steps")
"""Where the loss by truncation is measured: every position between its pins is free."""


def table_of(model: DenoiserModel) -> Tensor:
    """The embedding of every token, [vocab, hidden]."""
    with torch.inference_mode():
        return model.embed(torch.arange(model.config.vocab_size, device=model.device))


def signal_of(model: DenoiserModel, signal: Signal) -> Callable[[Tensor], Tensor]:
    """Another way to make a model's soft embeddings from tempered logits."""
    table = table_of(model).float()

    def wide(processed: Tensor) -> Tensor:
        rows = full_soft_embedding(processed.flatten(0, -2), table, scale=1.0)
        return rows.view(*processed.shape[:-1], -1).to(model.dtype)

    def none(processed: Tensor) -> Tensor:
        shape = (*processed.shape[:-1], table.shape[1])
        return torch.zeros(shape, dtype=model.dtype, device=model.device)

    return {Signal.PLAIN: model.soft_embedding, Signal.WIDE: wide, Signal.NONE: none}[signal]


class Watch:
    """Measures what k tokens would lose in every signal of a job, as the model makes them."""

    def __init__(self, loaded: Loaded) -> None:
        self.losses: list[dict[int, Loss]] = []
        """By step, then by k."""
        model = loaded.solver.model
        table = table_of(model)
        plain = model.soft_embedding

        def watched(processed: Tensor) -> Tensor:
            rows = processed.flatten(0, 1)
            losses: dict[int, Loss] = {}
            for k in TOP_K:
                found = truncation(rows, table, k)
                losses[k] = Loss(floats(found.dropped), floats(found.error))
            self.losses.append(losses)
            return plain(processed)

        model.soft_embedding = watched


class Ablations:
    """Every engine that is asked for, and what they have answered."""

    def __init__(self, model: Path, cache: Path | None, stack: contextlib.ExitStack) -> None:
        self.model = model
        self.print = fingerprint(model)
        self.stack = stack
        self.tokenizer = Tokenizer(model)
        self.prompts = prompt_format_for(self.tokenizer, model)
        self.prompt_caches: dict[int | None, PrefixCache] = {}
        self.subjects: dict[tuple[Variant, bool], Subject] = {}
        self.watch: Watch | None = None
        self.warmed: set[tuple[int | None, str]] = set()
        self.known: dict[str, Record] = {}
        if cache is not None and cache.exists():
            for line in cache.read_bytes().splitlines():
                record = msgspec.json.decode(line, type=Record)
                self.known[record.key] = record
        self.out = stack.enter_context(cache.open("ab")) if cache else None

    def subject(self, variant: Variant, *, watched: bool) -> Subject:
        """An engine of a variant; those of one window share their cached prompts."""
        key = (variant, watched)
        if key not in self.subjects:
            shared = self.prompt_caches.setdefault(
                variant.window, PrefixCache(CACHE_BYTES, SPARE_TOKENS)
            )
            with with_window(self.model, variant.window) as folder:
                loaded = load(
                    folder,
                    mask_rule=variant.mask_rule,
                    conditioning=variant.conditioning,
                    cache=shared,
                )
            model = loaded.solver.model
            if variant.signal is not Signal.PLAIN:
                model.soft_embedding = signal_of(model, variant.signal)
            if watched:
                self.watch = Watch(loaded)
            length = loaded.info.canvas_length
            settings = self.prompts.settings.within(length)
            self.subjects[key] = Subject(
                TorchEngine(loaded), self.tokenizer, self.prompts, settings, length, {}
            )
        return self.subjects[key]

    async def record(self, run: Run, hole: Hole) -> Record:
        """One hole by one run, from the cache if it is known."""
        # The server's own job is the same for every engine; what is known needs no more of them.
        job = case_of(hole, self.subject(EVERY, watched=False)).job
        known = (self.print, run, hole, job)
        key = hashlib.sha256(msgspec.json.encode(known)).hexdigest()[:24]
        if key not in self.known:
            watched = run == MEASURED
            subject = self.subject(run.variant, watched=watched)
            await self._warm(run.variant.window, hole, subject)
            if self.watch is not None:
                self.watch.losses.clear()
            filled = await METHODS[run.method](subject, hole)
            assert filled is not None
            losses = list(self.watch.losses) if watched and self.watch is not None else []
            record = Record(key, outcome_of(hole, filled), losses)
            self.known[key] = record
            if self.out is not None:
                self.out.write(msgspec.json.encode(record) + b"\n")
                self.out.flush()
        return self.known[key]

    async def _warm(self, window: int | None, hole: Hole, subject: Subject) -> None:
        """Read the prompt first: its last token rounds otherwise alone than among the others."""
        if (window, hole.id) not in self.warmed:
            self.warmed.add((window, hole.id))
            case = case_of(hole, subject)
            await ask(subject, case, known_length(1)(case))

    async def close(self) -> None:
        """End every engine."""
        for subject in self.subjects.values():
            await subject.engine.close()


@contextlib.contextmanager
def with_window(model: Path, window: int | None) -> Iterator[Path]:
    """A checkpoint folder whose sliding window is another one; the same folder for None."""
    if window is None:
        yield model
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in model.iterdir():
            (folder / path.name).symlink_to(path.resolve())
        config = json.loads((model / "config.json").read_text("utf-8"))
        config["text_config"]["sliding_window"] = window
        (folder / "config.json").unlink()
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
        yield folder


async def measure(
    ablations: Ablations, holes: list[Hole], asked: list[str]
) -> dict[str, dict[str, dict[str, list[Record]]]]:
    """Records by question, method and row, in the order of the holes."""
    found: dict[str, dict[str, dict[str, list[Record]]]] = {
        name: {part: {row: [] for row in rows} for part, rows in QUESTIONS[name].parts.items()}
        for name in asked
    }
    met: Counter[str] = Counter()
    for number, hole in enumerate(holes, 1):
        met[hole.kind] += 1
        for name in asked:
            question = QUESTIONS[name]
            if question.only not in (None, hole.kind) or met[hole.kind] > question.holes:
                continue
            for part, rows in question.parts.items():
                for row, run in rows.items():
                    found[name][part][row].append(await ablations.record(run, hole))
        print(f"\r{number} of {len(holes)} holes", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    await ablations.close()
    return found


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None)
    parser.add_argument("--questions", default=",".join(QUESTIONS), help="separated by commas")
    parser.add_argument("--limit", type=int, default=250, help="holes of each kind at most")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    asked = options.questions.split(",")
    if wrong := [name for name in asked if name not in QUESTIONS]:
        parser.error(f"no question is called {wrong[0]!r}; choose from {', '.join(QUESTIONS)}")
    if options.limit < 2:
        parser.error("an interval needs at least two holes of each kind")
    torch.set_num_threads(options.threads)
    holes = holes_of(["line", "rest"], options.limit)
    with contextlib.ExitStack() as stack:
        ablations = Ablations(find_model(options.model), options.cache, stack)
        found = asyncio.run(measure(ablations, holes, asked))
    sections = [QUESTIONS[name].section(parts) for name, parts in found.items()]
    text = page(sections, model=ablations.model.name, threads=options.threads)
    options.out.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
