"""The page that bench.ablations writes: what changes with each row, and how sure that is."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from dg_lsp.bench.figures import mean, share
from dg_lsp.bench.machine import machine
from dg_lsp.bench.outcome import Outcome
from dg_lsp.bench.paired import Difference, flips, mean_difference, share_difference
from dg_lsp.bench.score import quantile
from dg_lsp.bench.tables import table


class Loss(msgspec.Struct, frozen=True):
    """What leaving out all but k tokens loses, one figure for each free position."""

    dropped: list[float]
    """Probability left out."""
    error: list[float]
    """Distance to the full sum over the full sum's length."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hole by one run."""

    key: str
    outcome: Outcome
    losses: list[dict[int, Loss]] = []
    """By step, then by k, where they were measured."""


Rows = dict[str, list[Record]]


class Section(NamedTuple):
    """A question with its records by part and row."""

    title: str
    note: str
    parts: dict[str, Rows]
    losses: bool = False
    """Whether it is told what the likeliest tokens leave out."""


def page(sections: Sequence[Section], *, model: str, threads: int) -> str:
    """The whole page."""
    parts = [
        "# What single parts of a denoise step are worth",
        f"`python -m bench.ablations`: {model} on held-out holes, half whole lines and half rests "
        "of lines unless a section says otherwise; the same holes and seeds in every row, one "
        f"engine of {threads} thread{'s' * (threads > 1)} at a time; {machine()}.",
        "Each row stands beside the first of its table: the difference in points with its 95 % "
        "interval (exact: Agresti and Min for matched pairs; similarity: normal, of the hole-wise "
        "differences), the holes that only this row (+) or only the first (-) fills exactly, and "
        "the share of holes with the same text. Written by the command, never by hand.",
    ]
    for section in sections:
        parts.append(f"## {section.title}")
        if section.note:
            parts.append(section.note)
        for name, rows in section.parts.items():
            parts += [f"**{name[0].upper()}{name[1:]}**, {_count(rows)} holes:", rows_table(rows)]
        if section.losses:
            parts += [text for rows in section.parts.values() if (text := loss_text(rows))]
    return "\n\n".join(parts) + "\n"


def rows_table(rows: Rows) -> str:
    """Every row beside the first."""
    base = [r.outcome for r in next(iter(rows.values()))]
    head = ["", "exact", "difference", "+ / -", "similarity", "difference", "same text", "steps"]
    lines: list[list[str]] = []
    for index, (name, records) in enumerate(rows.items()):
        found = [r.outcome for r in records]
        compared = ["", "", "", ""] if index == 0 else _compared(base, found)
        lines.append(
            [
                name,
                f"{share(o.exact for o in found):.1%}",
                *compared[:2],
                f"{mean(o.similarity for o in found):.3f}",
                *compared[2:],
                f"{mean(o.steps for o in found):.2f}",
            ]
        )
    return table(head, lines)


def _compared(base: Sequence[Outcome], found: Sequence[Outcome]) -> list[str]:
    before, after = [o.exact for o in base], [o.exact for o in found]
    gained, lost = flips(before, after)
    similar = mean_difference([o.similarity for o in base], [o.similarity for o in found])
    same = share(b.text == o.text for b, o in zip(base, found, strict=True))
    return [
        _interval(share_difference(before, after), lambda x: f"{100 * x:+.1f}"),
        f"{gained} / {lost}",
        _interval(similar, lambda x: f"{x:+.3f}"),
        f"{same:.1%}",
    ]


def _interval(found: Difference, show: Callable[[float], str]) -> str:
    return f"{show(found.mean)} ({show(found.low)} to {show(found.high)})"


def loss_text(rows: Rows) -> str:
    """What k tokens drop by step, over the records of the first row; empty if not measured."""
    measured = [r.losses for r in next(iter(rows.values())) if r.losses]
    if not measured:
        return ""
    tops = list(measured[0][0])
    lines: list[list[str]] = []
    for step in range(max(map(len, measured))):
        losses = [by_step[step] for by_step in measured if step < len(by_step)]
        cells = [f"{step + 1}", f"{len(losses)}"]
        for k in tops:
            dropped = [x for loss in losses for x in loss[k].dropped]
            error = [x for loss in losses for x in loss[k].error]
            cells += [_loss(dropped), _loss(error)]
        lines.append(cells)
    head = ["after step", "holes"]
    for k in tops:
        head += [f"k = {k}: dropped", "error"]
    return (
        "What the k likeliest tokens leave out, on the logits of those steps (known length, the "
        "full sum; `dg_kernels.reference.truncation`): probability dropped, and the distance to "
        "the full sum over its length, mean and 90th percentile over the free positions. The last "
        "step conditions nothing; holes that have settled are no longer counted.\n\n"
        + table(head, lines)
    )


def _loss(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3f} / {quantile(values, 0.9):.3f}"


def _count(rows: Rows) -> int:
    return len(next(iter(rows.values())))
