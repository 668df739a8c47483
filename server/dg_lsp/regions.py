"""Lines that an edit waits for, followed through what is typed around them."""

from __future__ import annotations

import msgspec

from dg_lsp.documents import ContentChange, Document
from dg_lsp.lines import Lines, alike_ends, body_of
from dg_lsp.positions import Encoding

LinePlace = tuple[int, int]
"""A line and a column in code points, from zero."""


class Region(msgspec.Struct, frozen=True):
    """Whole lines, without the last one's line break."""

    first: int
    last: int
    """Included."""
    bodies: tuple[str, ...]
    """The lines as they were chosen, without line breaks."""

    @classmethod
    def of(cls, lines: Lines, first: int, last: int) -> Region:
        """The lines `first` to `last`, both included."""
        return cls(first, last, _bodies(lines, first, last))

    @property
    def end(self) -> LinePlace:
        """The end of the last line."""
        return self.last, len(self.bodies[-1])

    def stands_in(self, lines: Lines) -> bool:
        """Whether `lines` still hold the old text in its place."""
        return _bodies(lines, self.first, self.last) == self.bodies


def followed(
    region: Region, before: Document, change: ContentChange, after: Document, encoding: Encoding
) -> Region | None:
    """The region after one change of its document, None when the change touched its lines."""
    if change.range is None:
        start, end = _differing(before.lines, after.lines)
    else:
        places = (change.range.start, change.range.end)
        start, end = sorted(before.place(place, encoding) for place in places)
    if end <= (region.first, 0):
        grown = after.lines.count - before.lines.count
        moved = msgspec.structs.replace(
            region, first=region.first + grown, last=region.last + grown
        )
    elif start >= region.end:
        moved = region
    else:
        return None
    # A change that only touches the region may still join or part its first or last line.
    return moved if moved.first >= 0 and moved.stands_in(after.lines) else None


def _differing(before: Lines, after: Lines) -> tuple[LinePlace, LinePlace]:
    """Where `before` differs from `after`, in whole lines of `before`."""
    old, new = before.between(0, before.count), after.between(0, after.count)
    same, behind = alike_ends(old, new)
    return (same, 0), (len(old) - behind, 0)


def _bodies(lines: Lines, first: int, last: int) -> tuple[str, ...]:
    return tuple(body_of(line) for line in lines.between(first, last + 1))
