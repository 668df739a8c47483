"""An edit as tokens that were taken away and tokens that came in their place."""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Sequence

import msgspec

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_SAME_LINE = 0.5
"""From this similarity on, a line was edited and not written anew."""
MOST_CHARS = 2_000
"""Of a line that is compared."""


class Swap(msgspec.Struct, frozen=True):
    """One run of tokens that became another, in one line."""

    line: int
    """Of the new text, counted from the edit's first."""
    column: int
    """Of the new text, where the new tokens begin, in code points."""
    removed: tuple[str, ...]
    added: tuple[str, ...]
    before: tuple[str, ...]
    """The tokens in front, white space left out, the nearest last."""
    after: tuple[str, ...]
    """The tokens behind, white space left out, the nearest first."""

    @property
    def names(self) -> tuple[str, str] | None:
        """The two names, when one name became another."""
        if len(self.removed) == len(self.added) == 1:
            old, new = self.removed[0], self.added[0]
            if is_name(old) and is_name(new) and new.strip("_"):  # `_` is for what nobody needs
                return old, new
        return None


def is_name(token: str) -> bool:
    """Whether a token is a name that somebody gave."""
    return token.isidentifier() and not keyword.iskeyword(token)


def tokens_of(line: str) -> list[str]:
    """Words, runs of white space and single other characters; joined again they are the line."""
    return _TOKEN.findall(line)


def swaps_between(old: Sequence[str], new: Sequence[str]) -> list[Swap] | None:
    """What became of the tokens of lines; None when the lines are not edited but others.

    Lines are compared one by one, so there must be as many before as after.
    """
    if len(old) != len(new):
        return None
    found: list[Swap] = []
    for index, (was, now) in enumerate(zip(old, new, strict=True)):
        if was == now:
            continue
        if max(len(was), len(now)) > MOST_CHARS:
            return None
        swaps = swaps_in_line(was, now, index)
        if swaps is None:
            return None
        found += swaps
    return found


def swaps_in_line(was: str, now: str, line: int = 0) -> list[Swap] | None:
    """What became of the tokens of one line; None when it is another line."""
    a, b = tokens_of(was), tokens_of(now)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < _SAME_LINE:
        return None
    columns = [0]
    for token in b:
        columns.append(columns[-1] + len(token))
    return [
        Swap(
            line=line,
            column=columns[j1],
            removed=tuple(a[i1:i2]),
            added=tuple(b[j1:j2]),
            before=_said(a[:i1]),
            after=_said(a[i2:]),
        )
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def _said(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(token for token in tokens if not token.isspace())
