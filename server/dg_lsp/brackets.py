"""Brackets without a partner, counted outside strings and comments as far as one line shows."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from dg_lsp.languages import comment_mark

_PARTNER = {")": "(", "]": "[", "}": "{"}
_STRINGS = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\\n]|\\.)*`"
_REMEMBERED_TEXTS = 16


class Balance(NamedTuple):
    """Brackets of a text that have no partner in it."""

    stray: int
    """Closers that nothing opened."""
    open: int
    """Openers that nothing closed."""

    @property
    def faults(self) -> int:
        """All of them."""
        return self.stray + self.open

    def is_no_worse_than(self, other: Balance) -> bool:
        """Whether there are no more faults, and no stray closer in exchange for an open bracket."""
        return self.faults <= other.faults and self.stray <= other.stray


@cache
def _tokens(language: str) -> re.Pattern[str]:
    comment = re.escape(comment_mark(language)) + r"[^\n]*"
    return re.compile(rf"{_STRINGS}|{comment}|([()\[\]{{}}])")


def balance_of(text: str, language: str) -> Balance:
    """Count the brackets of `text` that have no partner."""
    return _balance(_brackets_in(text, language))


class Balances:
    """Brackets without a partner around a cursor, for one text after the other between them."""

    def __init__(self, before: str, after: str, language: str) -> None:
        """`before` and `after` are the text on both sides of the cursor."""
        # No string and no comment of `_tokens` goes on behind a line break.
        at, end = before.rfind("\n") + 1, after.find("\n")
        end = len(after) if end < 0 else end
        self._language = language
        self._above = _part(before[:at], language)
        self._below = _part(after[end:], language)
        self._start, self._rest = before[at:], after[:end]

    def with_text(self, text: str) -> Balance:
        """Once `text` stands at the cursor."""
        above, below = self._above, self._below
        here = _brackets_in(self._start + text + self._rest, self._language)
        stray, left = _balance(above.openers + here + below.closers + below.openers)
        return Balance(stray + above.stray + len(above.closers) + below.stray, left)


def _brackets_in(text: str, language: str) -> str:
    return "".join(_tokens(language).findall(text))


class _Part(NamedTuple):
    """What the brackets of a part of a text leave for the parts around it."""

    stray: int
    """Closers that have no partner whatever stands before the part."""
    closers: str
    """Closers that may have one there."""
    openers: str
    """Behind those, openers that may have one behind the part."""


@lru_cache(_REMEMBERED_TEXTS)
def _part(text: str, language: str) -> _Part:
    return _matched(_brackets_in(text, language))


def _matched(brackets: str) -> _Part:
    openers: list[str] = []
    closers: list[str] = []
    stray = 0
    for bracket in brackets:
        if bracket not in _PARTNER:
            openers.append(bracket)
        elif not openers:
            closers.append(bracket)
        elif openers[-1] == _PARTNER[bracket]:
            openers.pop()
        else:
            stray += 1
    return _Part(stray, "".join(closers), "".join(openers))


def _balance(brackets: str) -> Balance:
    part = _matched(brackets)
    return Balance(part.stray + len(part.closers), len(part.openers))


def cut_where_balanced(
    before: str, text: str, after: str, language: str, *, several: bool = True
) -> str:
    """The longest start of `text`, ending before a bracket, that leaves brackets no worse; or none.

    Text of `several` lines that ends with an opener or a comma stays: that is a call which goes on
    below. Of one line only the head of a block may: nobody wants a call that he must close.
    """
    opens = "{" if language != "python" else ()
    goes_on = text.endswith(("(", "[", "{", ",") if several else opens)
    if goes_on and balance_of(before + text, language).stray <= balance_of(before, language).stray:
        return text
    balances = Balances(before, after, language)
    bar = balances.with_text("")
    ends = [i for i, character in enumerate(text) if character in "()[]{}"]
    kept = (text[:end] for end in reversed(ends))
    return next((k for k in kept if balances.with_text(k).is_no_worse_than(bar)), "")
