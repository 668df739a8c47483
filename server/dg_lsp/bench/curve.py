"""When to show an answer: shares shown, right and silent by the confidence that is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from dg_lsp.bench.outcome import Outcome

QUIET_SILENT = 0.96
"""Share of the quiet cases that are to be silent."""
ONE_LINE = ("line", "rest")
"""Kinds of hole that are asked for as one types."""
_POINTS = 40

Signal = Callable[[Outcome], float]
SIGNALS: dict[str, Signal] = {
    "mean": lambda outcome: math.exp(min(0.0, outcome.confidence)),
    "whole": lambda outcome: math.exp(min(0.0, outcome.total)),
}
"""Geometric mean of the tokens' probabilities (what the server calls confidence), and the
probability of the whole text with its end."""


class Point(msgspec.Struct, frozen=True):
    """What happens when only answers of at least this confidence are shown."""

    threshold: float
    quiet_silent: float
    """Share of the quiet cases in which nothing is shown."""
    shown: float
    """Share of the other cases in which something is shown."""
    right: float
    """Share of those shown that are exact; 0 of none."""


class Curve(msgspec.Struct, frozen=True):
    """One method by one signal."""

    signal: str
    quiet: int
    others: int
    points: list[Point]
    chosen: Point
    """The lowest threshold that keeps QUIET_SILENT of the quiet cases silent, all cases used."""
    crossed: Point
    """The same with thresholds chosen on one half of the cases and counted on the other."""


def curve_of(outcomes: Sequence[Outcome], signal: str) -> Curve | None:
    """The curve of one method's outcomes; None without quiet cases, or without others.

    The others are the holes of one line, which come by themselves as one types; all there are
    where the run has none of these.
    """
    quiet = [o for o in outcomes if o.kind == "quiet"]
    loud = [o for o in outcomes if o.kind != "quiet"]
    others = [o for o in loud if o.kind in ONE_LINE] or loud
    if not quiet or not others:
        return None
    measure = SIGNALS[signal]
    values = sorted({measure(o) for o in outcomes if o.is_shown})
    stride = max(1, len(values) // _POINTS)
    thresholds = [0.0, *values[::stride]]
    crossed = [
        point_at(quiet[1 - half :: 2], others[1 - half :: 2], measure, threshold)
        for half in (0, 1)
        for threshold in [threshold_for(quiet[half::2], measure)]
    ]
    return Curve(
        signal,
        len(quiet),
        len(others),
        [point_at(quiet, others, measure, threshold) for threshold in thresholds],
        point_at(quiet, others, measure, threshold_for(quiet, measure)),
        _averaged(crossed),
    )


def threshold_for(quiet: Sequence[Outcome], measure: Signal) -> float:
    """The lowest confidence to ask for so that QUIET_SILENT of the quiet cases stay silent."""
    loud = sorted((measure(o) for o in quiet if o.is_shown), reverse=True)
    allowed = math.floor((1 - QUIET_SILENT) * len(quiet) + 1e-9)
    if len(loud) <= allowed:
        return 0.0
    return math.nextafter(loud[allowed], math.inf)


def point_at(
    quiet: Sequence[Outcome], others: Sequence[Outcome], measure: Signal, threshold: float
) -> Point:
    """Count at one threshold."""

    def is_shown(outcome: Outcome) -> bool:
        return outcome.is_shown and measure(outcome) >= threshold

    seen = [o for o in others if is_shown(o)]
    return Point(
        threshold,
        1 - sum(map(is_shown, quiet)) / max(1, len(quiet)),
        len(seen) / max(1, len(others)),
        sum(o.exact for o in seen) / len(seen) if seen else 0.0,
    )


def _averaged(points: Sequence[Point]) -> Point:
    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    return Point(
        mean([p.threshold for p in points]),
        mean([p.quiet_silent for p in points]),
        mean([p.shown for p in points]),
        mean([p.right for p in points]),
    )
