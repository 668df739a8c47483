"""How good a text is in the place where it would stand."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache

_TELLING_CHARS = 4
"""A following line that is shorter (`}`, `end`) may well be said again."""
_MARGINS = 8
"""How many lines at the margin are tried on each side of a hole."""


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
        with warnings.catch_warnings():
            # Strings in other people's code may hold escapes that the compiler frowns upon.
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parses_between(prefix: str, truth: str, text: str, suffix: str) -> bool | None:
    """Whether the program around a hole parses with `text` in it.

    A cut program counts from one of its lines at the margin to another; None when none of these
    windows parses with the true text.
    """
    around = _window(prefix, truth, suffix)
    return None if around is None else parses(around[0] + text + around[1])


@lru_cache(maxsize=64)
def _window(prefix: str, truth: str, suffix: str) -> tuple[str, str] | None:
    """The whole text, or else the smallest part of it that parses with the true text."""
    if parses(prefix + truth + suffix):
        return prefix, suffix
    for start in _margins(prefix, reverse=True):
        for end in _margins(suffix, reverse=False):
            if parses(prefix[start:] + truth + suffix[:end]):
                return prefix[start:], suffix[:end]
    return None


def _margins(text: str, *, reverse: bool) -> Iterator[int]:
    """Starts of the lines at the left margin that are nearest to the cursor, and the far end."""
    starts = [
        index + 1
        for index in range(len(text) - 1)
        if text[index] == "\n" and not text[index + 1].isspace()
    ]
    near = [*reversed(starts), 0] if reverse else [*starts, len(text)]
    yield from near[:_MARGINS]
