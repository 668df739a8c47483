"""Fill held-out holes with each method and count: `python -m bench.quality.evaluate`.

Every method sees the same holes and seeds in one run. An answer counts as exact when its text,
after the server's own filters, equals what stood there. Times are of the solver alone, on this
machine; they compare methods of one run, nothing else.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import platform
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import torch
from dg_engine.job import Frame
from dg_engine.loader import Loaded, load
from dg_engine.models import find_model
from dg_engine.tokenizer import Tokenizer
from dg_lsp.jobs import filled_in
from dg_lsp.prompts import prompt_format_for
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.suggestion import Place, suggestion_of

from bench.quality.methods import METHODS, Case, Hole, Method, case_of

HOLES = Path(__file__).parent / "holes_v1.jsonl"


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
    """Milliseconds behind an encoded prompt."""


def read_holes(path: Path, limit: int | None) -> list[Hole]:
    """One JSON object a line; raises SystemExit with one sentence on a bad line."""
    holes: list[Hole] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if limit is not None and len(holes) >= limit:
            break
        try:
            holes.append(msgspec.json.decode(line, type=Hole))
        except msgspec.MsgspecError as error:
            raise SystemExit(
                f"{path}:{number}: {error}; each line needs id, prefix, middle, suffix and path."
            ) from error
    return holes


def fill(loaded: Loaded, prompts: PromptFormat, case: Case, method: Method) -> Outcome:
    """Solve one case; the prompt is in the cache from the case's first method on."""
    job = method(case)
    began = time.perf_counter()
    frame: Frame | None = None
    for frame in loaded.solver.run(job, loaded.solver.clock()):  # noqa: B007 - the last counts
        pass
    ms = 1000 * (time.perf_counter() - began)
    if frame is None:
        raise AssertionError("a job yields at least its last frame")
    text = ""
    if frame.ids:
        raw = prompts.answer(filled_in(job, frame.ids[0], frame.widths[0]))
        text = suggestion_of(raw, Place(view=case.view, multi_line=False)).text
    hole = case.hole
    return Outcome(
        id=hole.id,
        kind=hole.kind,
        text=text,
        exact=text == hole.middle.rstrip(),
        similarity=difflib.SequenceMatcher(None, text, hole.middle).ratio(),
        parses=_parses(hole.prefix + text + hole.suffix),
        repeats_suffix=_repeats(text, hole.suffix),
        confidence=frame.scores[0] if frame.scores else 0.0,
        steps=frame.step,
        forwards=frame.forwards,
        ms=ms,
    )


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _repeats(text: str, suffix: str) -> bool:
    """Whether the answer ends with what follows anyway: the rest of its line, or the next line."""
    rest, _, below = suffix.partition("\n")
    following = next((line.strip() for line in below.split("\n") if line.strip()), "")
    tail = rest.strip()
    if tail and text.rstrip().endswith(tail) and len(tail) > 1:
        return True
    return len(following) > 3 and text.strip().endswith(following)


def table(results: dict[str, list[Outcome]]) -> str:
    """A Markdown table, one row per method."""
    lines = [
        "| method | exact | line | rest | similarity | repeats suffix | steps | forwards "
        "| ms p50 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, outcomes in results.items():
        by_kind = {
            kind: _share(o.exact for o in outcomes if o.kind == kind) for kind in ("line", "rest")
        }
        lines.append(
            f"| {name} | {_share(o.exact for o in outcomes)} | {by_kind['line']} "
            f"| {by_kind['rest']} | {statistics.fmean(o.similarity for o in outcomes):.3f} "
            f"| {_share(o.repeats_suffix for o in outcomes)} "
            f"| {statistics.fmean(o.steps for o in outcomes):.1f} "
            f"| {statistics.fmean(o.forwards for o in outcomes):.1f} "
            f"| {statistics.median(o.ms for o in outcomes):.0f} |"
        )
    return "\n".join(lines)


def _share(values: Iterable[bool]) -> str:
    listed = list(values)
    return f"{100 * sum(listed) / len(listed):.1f}%" if listed else "-"


def machine() -> str:
    """What ran, in one line."""
    return (
        f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"Python {platform.python_version()}"
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--holes", type=Path, default=HOLES)
    parser.add_argument("--model", default=None)
    parser.add_argument("--methods", default=None, help="names separated by ';', default all")
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, default=None, help="write every outcome here")
    parser.add_argument("--out", type=Path, default=None, help="write the table here")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = options.methods.split(";") if options.methods else list(METHODS)
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise SystemExit(f"No method is called {unknown[0]!r}; choose from: {'; '.join(METHODS)}")
    folder = find_model(options.model)
    loaded = load(folder)
    prompts = prompt_format_for(Tokenizer(folder), folder)
    cases = [
        case_of(h, prompts, prompts.settings) for h in read_holes(options.holes, options.limit)
    ]
    results: dict[str, list[Outcome]] = {name: [] for name in names}
    with torch.inference_mode():
        for number, case in enumerate(cases, 1):
            # The first run of a case pays for the prompt; none of the methods is charged for it.
            fill(loaded, prompts, case, METHODS["known length, 1 step"])
            for name in names:
                results[name].append(fill(loaded, prompts, case, METHODS[name]))
            if number % 25 == 0:
                print(f"{number} of {len(cases)}", file=sys.stderr, flush=True)
    report = (
        f"{len(cases)} holes of {options.holes.name}, model {loaded.info.model} "
        f"({loaded.info.parameters / 1e6:.1f} M parameters, {loaded.info.dtype}), {machine()}.\n"
        f"Standard error of a share near 30% over these holes: "
        f"{100 * (0.21 / len(cases)) ** 0.5:.1f} points.\n\n{table(results)}\n"
    )
    print(report)
    if options.out:
        options.out.write_text("# Held-out holes, by method\n\n" + report, encoding="utf-8")
    if options.json:
        options.json.write_text(
            json.dumps({n: msgspec.to_builtins(o) for n, o in results.items()}), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
