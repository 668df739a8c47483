"""Two methods on the same holes: the difference of each hole, its mean and how sure that is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

NORMAL_95 = 1.959964
"""Standard errors on each side of a mean that hold 95 % of a normal distribution."""


class Difference(NamedTuple):
    """A mean difference and the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float


class Flips(NamedTuple):
    """Holes that only one of two methods fills exactly."""

    gained: int
    lost: int


def flips(before: Sequence[bool], after: Sequence[bool]) -> Flips:
    """Count what `after` has and `before` lacks, and the other way round, hole by hole."""
    pairs = list(zip(before, after, strict=True))
    return Flips(sum(a and not b for b, a in pairs), sum(b and not a for b, a in pairs))


def share_difference(before: Sequence[bool], after: Sequence[bool]) -> Difference:
    """Share of `after` less that of `before`.

    The interval is that of Agresti and Min (2005, "Simple improved confidence intervals for
    comparing matched proportions"): half a hole is added to each of the four outcomes of a pair,
    so that few flips, or none, do not look like certainty. The mean is without them. Raises
    ValueError without holes.
    """
    gained, lost = flips(before, after)
    holes = len(before)
    if not holes:
        raise ValueError("A difference needs at least one hole.")
    moved, shift, padded = gained + lost + 1, gained - lost, holes + 2
    error = math.sqrt(max(0.0, moved - shift**2 / padded)) / padded
    centre, reach = shift / padded, NORMAL_95 * error
    return Difference(shift / holes, centre - reach, centre + reach)


def mean_difference(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Mean of `after` less that of `before`, by the normal distribution of hole-wise differences.

    Raises ValueError for less than two holes.
    """
    moved = [a - b for b, a in zip(before, after, strict=True)]
    if len(moved) < 2:
        raise ValueError("An interval needs at least two holes.")
    mean = statistics.fmean(moved)
    reach = NORMAL_95 * statistics.stdev(moved) / math.sqrt(len(moved))
    return Difference(mean, mean - reach, mean + reach)
