"""Which lines differ between two versions of a document, found from what they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dg_lsp.lines import Lines


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
    """The least run of lines that covers every difference, None when there is none.

    Chunks that both versions share are the same objects and compare at once, so an edit is found
    in O(chunks + lines of a chunk).
    """
    before = _alike(old.chunks, new.chunks)
    behind = _alike(old.chunks[before:][::-1], new.chunks[before:][::-1])
    olds = [line for chunk in old.chunks[before : len(old.chunks) - behind] for line in chunk]
    news = [line for chunk in new.chunks[before : len(new.chunks) - behind] for line in chunk]
    same = _alike(olds, news)
    if same == len(olds) == len(news):
        return None
    tail = _alike(olds[same:][::-1], news[same:][::-1])
    start = sum(len(chunk) for chunk in old.chunks[:before])
    return Change(start + same, start + len(olds) - tail, start + len(news) - tail)


def _alike(old: Sequence[object], new: Sequence[object]) -> int:
    """How many items both start with."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count
