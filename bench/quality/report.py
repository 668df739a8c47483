"""Writes bench/results/quality.md and its plots from runs that were saved with --json.

python -m bench.quality.report [RUN.json ...] [--out bench/results]

Without runs the figures that were kept in quality.json are written out again. The first run of
`dg-lsp bench quality` gives the figures; where it had several engines side by side, times come
from the first run that had one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from dg_lsp.bench.curve import QUIET_SILENT
from dg_lsp.bench.figures import Digest, Figures
from dg_lsp.bench.tables import markdown, table

from bench.quality.plots import draw

RESULTS = Path("bench/results")
KEPT = "quality.json"
_TITLES = {"quality": "Held-out holes", "humaneval": "HumanEval-Infilling"}
_INTRODUCTION = """\
# How well holes are filled

Written by `python -m bench.quality.report`; [bench/README.md](../README.md) says how it is run and
what the methods and columns are. The figures, without texts, are in [quality.json](quality.json).
"""


def read_digest(path: Path) -> list[Digest]:
    """The digest of a run, or all that a file of digests keeps; raises ValueError."""
    try:
        found: object = json.loads(path.read_bytes())
        if isinstance(found, dict) and "digest" in found:
            found = [found["digest"]]
        return msgspec.convert(found, list[Digest])
    except (ValueError, msgspec.ValidationError) as error:
        raise ValueError(f"{path} holds no run; write one by --json ({error}).") from None


def timed(digests: Sequence[Digest]) -> Digest:
    """The run whose times may be compared, else the first."""
    return next((digest for digest in digests if digest.times_compare), digests[0])


def report(digests: Sequence[Digest], pictures: Sequence[str]) -> str:
    """The page."""
    parts = [_INTRODUCTION.rstrip()]
    quality = [digest for digest in digests if digest.bench == "quality"]
    if quality:
        parts += ["## What was asked for", table(*_asked(quality[0], timed(quality)))]
    parts += [f"![{name.removesuffix('.svg').replace('_', ' ')}]({name})" for name in pictures]
    for digest in digests:
        parts.append(f"## {_TITLES.get(digest.bench, digest.bench)}")
        parts.append(markdown(digest, 3))
    return "\n\n".join(parts) + "\n"


def _asked(digest: Digest, times: Digest) -> tuple[list[str], list[list[str]]]:
    """What the model should reach, and what it does, as far as the run tells."""
    return ["", "wanted", "measured"], [list(row) for row in _bars(digest, times)]


def _bars(digest: Digest, times: Digest) -> Iterator[tuple[str, str, str]]:
    def of(group: str, method: str) -> Figures | None:
        return digest.groups.get(group, {}).get(method)

    line, known, twin = (
        of("one line", name) for name in ("default", "known length, 8 steps", "twin")
    )
    if line:
        yield "one line, length unknown", "35 % exact", f"{line.exact:.1%}"
        yield "repeats what follows", "under 0.5 % of shown", f"{line.repeats_suffix:.2%}"
    if line and known and known.exact:
        share = line.exact / known.exact
        yield "the same against a known length", "95 %", f"{share:.0%} of {known.exact:.1%}"
    if line and twin:
        told = f"{line.exact:.1%} against {twin.exact:.1%}; it repeats {twin.repeats_suffix:.2%}"
        yield "the same against the twin", "better", told
    span, other = of("span", "default"), of("span", "twin")
    if span and other:
        ratio = f"{span.exact / other.exact:.2f} times " if other.exact else ""
        told = f"{ratio}({span.exact:.1%} against {other.exact:.1%})"
        yield "span against the twin", "1.3 times", told
    few, many = (of("one line", f"known length, {steps} steps") for steps in (4, 16))
    if few and many:
        told = f"{100 * (many.exact - few.exact):+.1f} points"
        yield "16 steps against 4, length known", "at most 2 points", told
    for name, warm in list(digest.warm.items())[:1]:
        yield (
            name,
            "at most 2 forwards",
            f"{warm.warm_forwards:.0f} (cold {warm.cold_forwards:.0f})",
        )
    once, turn = of("two at once", "two at once"), of("two at once", "two in turn")
    timed_pair = [
        times.groups.get("two at once", {}).get(n) for n in ("two at once", "two in turn")
    ]
    if once and turn:
        told = f"{once.right:.1%} of the holes against {turn.right:.1%}"
        first, second = timed_pair
        if first and second and second.ms_p50:
            told += f", in {first.ms_p50 / second.ms_p50:.2f} of the time"
        yield "two at once against in turn", "as good, in half the time", told
    for curve in digest.curves.get("default", []):
        yield (
            f"shown, by confidence `{curve.signal}`, {QUIET_SILENT:.0%} of quiet cases silent",
            "85 %",
            f"{curve.chosen.shown:.1%}, of which {curve.chosen.right:.1%} exact",
        )
    figures = times.groups.get("one line", {}).get("default")
    if figures and times.times_compare:
        yield "one line", "p50 150 ms, p90 300 ms", f"{figures.ms_p50:.0f}, {figures.ms_p90:.0f} ms"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    out: Path = arguments.out
    digests = [digest for path in arguments.runs or [out / KEPT] for digest in read_digest(path)]
    quality = [digest for digest in digests if digest.bench == "quality"]
    pictures = draw(quality[0], timed(quality), out) if quality else []
    (out / "quality.md").write_text(report(digests, pictures), encoding="utf-8")
    kept = msgspec.json.format(msgspec.json.encode(digests), indent=0)
    (out / KEPT).write_bytes(kept + b"\n")


if __name__ == "__main__":
    main()
