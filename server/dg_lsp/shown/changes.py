"""Which lines differ between two versions of a document, found from what they share."""

from __future__ import annotations

from typing import NamedTuple

from dg_lsp.lines import Lines, alike_ends


class Change(NamedTuple):
    """Lines `first` up to, not including, `old_last` became `first` up to `new_last`."""

    first: int
    old_last: int
    new_last: int

    @property
    def grown(self) -> int:
        """How many lines there are more."""
        return self.new_last - self.old_last


def change_between(old: Lines, new: Lines) -> Change | None:
    """The least run of lines that covers every difference, None when there is none."""
    start, olds, news = old.differing(new)
    same, tail = alike_ends(olds, news)
    if same == len(olds) == len(news):
        return None
    return Change(start + same, start + len(olds) - tail, start + len(news) - tail)
