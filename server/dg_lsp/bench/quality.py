"""Held-out holes filled by an engine process with each method, and counted."""

from __future__ import annotations

import difflib
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from dg_engine.client import EngineClient
from dg_engine.engine import Engine, EngineError
from dg_engine.job import DoneKind, Frame
from dg_engine.tokenizer import Tokenizer

from dg_lsp.bench.methods import METHODS, Case, Hole, Method, case_of
from dg_lsp.bench.score import parses, quantile, repeats_suffix
from dg_lsp.jobs import filled_in
from dg_lsp.prompts import prompt_format_for
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.suggestion import Place, suggestion_of

HOLES = Path(__file__).resolve().parents[3] / "bench" / "quality" / "holes_v1.jsonl"
"""Where a checkout keeps the holes; an installed package has none."""
_WARM_UP = "known length, 1 step"


class Outcome(msgspec.Struct, frozen=True):
    """One hole filled by one method."""

    id: str
    kind: str
    text: str
    exact: bool
    similarity: float
    parses: bool
    repeats_suffix: bool
    confidence: float
    steps: int
    forwards: int
    ms: float
    """Milliseconds of the job, its way to the engine process and back included."""


Results = Mapping[str, Sequence[Outcome]]


def read_holes(path: Path, limit: int | None) -> list[Hole]:
    """One JSON object a line; raises OSError, and ValueError that names a bad line."""
    holes: list[Hole] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if limit is not None and len(holes) >= limit:
            break
        try:
            holes.append(msgspec.json.decode(line, type=Hole))
        except msgspec.MsgspecError as error:
            raise ValueError(
                f"{path}:{number}: {error}; each line needs id, prefix, middle, suffix and path."
            ) from error
    return holes


async def evaluate(
    folder: Path,
    holes: Sequence[Hole],
    names: Sequence[str],
    threads: int | None,
    after_each: Callable[[int], None] = lambda number: None,
) -> Results:
    """Every hole by every method, in an engine process of its own; raises EngineError."""
    tokenizer = Tokenizer(folder)
    prompts = prompt_format_for(tokenizer, folder)
    client = EngineClient(folder, threads=threads)
    results: dict[str, list[Outcome]] = {name: [] for name in names}
    try:
        await client.start()
        settings = prompts.settings.within((await client.info()).canvas_length)
        for number, hole in enumerate(holes, 1):
            case = case_of(hole, prompts, settings)
            # The first run of a case pays for the prompt; no method is charged for it.
            await fill(client, prompts, case, METHODS[_WARM_UP])
            for name in names:
                results[name].append(await fill(client, prompts, case, METHODS[name]))
            after_each(number)
    finally:
        await client.close()
    return results


async def fill(engine: Engine, prompts: PromptFormat, case: Case, method: Method) -> Outcome:
    """Solve one case; raises EngineError."""
    job = method(case)
    began = time.perf_counter()
    last: Frame | None = None
    async for frame in engine.submit(job):
        last = frame
        if frame.done is not None and frame.done.kind is DoneKind.ERROR:
            raise EngineError(frame.done.message or "The engine failed.")
    ms = 1000 * (time.perf_counter() - began)
    text = ""
    if last is not None and last.ids:
        raw = prompts.answer(filled_in(job, last.ids[0], last.widths[0]))
        text = suggestion_of(raw, Place(view=case.view, multi_line=False)).text
    hole = case.hole
    return Outcome(
        id=hole.id,
        kind=hole.kind,
        text=text,
        exact=text == hole.middle.rstrip(),
        similarity=difflib.SequenceMatcher(None, text, hole.middle).ratio(),
        parses=parses(hole.prefix + text + hole.suffix),
        repeats_suffix=repeats_suffix(text, hole.suffix),
        confidence=last.scores[0] if last is not None and last.scores else 0.0,
        steps=last.step if last is not None else 0,
        forwards=last.forwards if last is not None else 0,
        ms=ms,
    )


def summary(results: Results) -> dict[str, object]:
    """The figures by method, with every outcome, for scripts."""
    return {
        name: {
            "holes": len(outcomes),
            "exact": _share(o.exact for o in outcomes),
            "parses": _share(o.parses for o in outcomes),
            "repeats_suffix": _share(o.repeats_suffix for o in outcomes),
            "similarity": _mean(o.similarity for o in outcomes),
            "forwards": _mean(o.forwards for o in outcomes),
            "ms": {f"p{p}": quantile([o.ms for o in outcomes], p / 100) for p in (50, 90)},
            "outcomes": [msgspec.to_builtins(o) for o in outcomes],
        }
        for name, outcomes in results.items()
    }


def markdown(results: Results) -> str:
    """The figures as a table, one row per method.

    Whether the text parses is in `summary` alone: our own holes are cut out of their files.
    """
    lines = [
        "| method | exact | line | rest | similarity | repeats suffix | steps "
        "| forwards | ms p50 | ms p90 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, outcomes in results.items():
        ms = [o.ms for o in outcomes]
        lines.append(
            f"| {name} | {_share(o.exact for o in outcomes):.1%} "
            f"| {_share(o.exact for o in outcomes if o.kind == 'line'):.1%} "
            f"| {_share(o.exact for o in outcomes if o.kind == 'rest'):.1%} "
            f"| {_mean(o.similarity for o in outcomes):.3f} "
            f"| {_share(o.repeats_suffix for o in outcomes):.1%} "
            f"| {_mean(o.steps for o in outcomes):.1f} "
            f"| {_mean(o.forwards for o in outcomes):.1f} "
            f"| {quantile(ms, 0.5):.0f} | {quantile(ms, 0.9):.0f} |"
        )
    return "\n".join(lines)


def _share(values: Iterable[bool]) -> float:
    return _mean(map(float, values))


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return statistics.fmean(listed) if listed else 0.0
