"""How good a text is in the place where it would stand."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

_TELLING_CHARS = 4
"""A following line that is shorter (`}`, `end`) may well be said again."""


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not pass; NaN of none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def repeats_suffix(text: str, suffix: str) -> bool:
    """Whether a text ends with what follows anyway: the rest of its line, or the next line."""
    rest, _, below = suffix.partition("\n")
    following = next((line.strip() for line in below.split("\n") if line.strip()), "")
    tail = rest.strip()
    if len(tail) > 1 and text.rstrip().endswith(tail):
        return True
    return len(following) >= _TELLING_CHARS and text.strip().endswith(following)


def parses(text: str) -> bool:
    """Whether a text is Python."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
