"""Brackets without a partner, counted outside strings and comments as far as one line shows."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from dg_lsp.languages import comment_mark

_PARTNER = {")": "(", "]": "[", "}": "{"}
_STRINGS = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\\n]|\\.)*`"


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
    openers: list[str] = []
    stray = 0
    for match in _tokens(language).finditer(text):
        bracket: str | None = match[1]
        if bracket is None:
            continue
        if bracket not in _PARTNER:
            openers.append(bracket)
        elif openers and openers[-1] == _PARTNER[bracket]:
            openers.pop()
        else:
            stray += 1
    return Balance(stray, len(openers))


def cut_where_balanced(before: str, text: str, after: str, language: str) -> str:
    """The longest start of `text`, ending before a bracket, that leaves brackets no worse; or none.

    Text that ends with an opener or a comma stays: that is a call which goes on below.
    """
    goes_on = text.endswith(("(", "[", "{", ","))
    if goes_on and balance_of(before + text, language).stray <= balance_of(before, language).stray:
        return text
    bar = balance_of(before + after, language)
    ends = [i for i, character in enumerate(text) if character in "()[]{}"]
    kept = (text[:end] for end in reversed(ends))
    return next(
        (k for k in kept if balance_of(before + k + after, language).is_no_worse_than(bar)), ""
    )
