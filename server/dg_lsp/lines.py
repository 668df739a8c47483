"""Text as an immutable table of lines that shares what an edit does not touch."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

CHUNK_LINES = 512
"""An edit copies one chunk and the list of chunks: about the square root of a large file."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    r"""Lines with their endings; only `\n`, `\r\n` and `\r` end one.

    The last line has no ending, so it is empty when the text ends with a line break.
    """
    if "\r" not in text:
        head, _, last = text.rpartition("\n")
        return [line + "\n" for line in head.split("\n")] + [last] if _ else [last]
    found: list[str] = _LINE.findall(text)
    if text[-1] in "\r\n":
        found.append("")
    return found


def alike(old: Sequence[object], new: Sequence[object]) -> int:
    """How many items both start with."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count


def ending_of(line: str) -> str:
    """The line break that ends `line`, empty for the last one."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1:] if line.endswith(("\n", "\r")) else ""


def body_of(line: str) -> str:
    """`line` without its line break."""
    return line[: len(line) - len(ending_of(line))]


class Note(NamedTuple):
    """What was made of some lines of a table."""

    first: int
    last: int
    """Behind the last of them."""
    value: object


class Lines:
    """A file's lines, each with its ending; every edit makes a new table.

    Making one from an edit costs O(lines edited + chunk + number of chunks). Notes on lines that it
    leaves where they are go over to it.
    """

    __slots__ = ("_notes", "_starts", "chunks", "count")

    def __init__(self, chunks: Sequence[tuple[str, ...]], alike: Lines | None = None) -> None:
        """`alike` is a table whose runs are as long as these."""
        self.chunks = chunks
        """The lines in runs, which edits share."""
        if alike is None:
            self._starts = list(accumulate(map(len, chunks), initial=0))
            self.count = self._starts.pop()
        else:
            self._starts, self.count = alike._starts, alike.count
        self._notes: dict[str, Note] = {}

    @classmethod
    def of(cls, text: str) -> Lines:
        """The table of a whole text."""
        return cls(_chunked(split_lines(text)))

    def __getitem__(self, index: int) -> str:
        chunk = self._chunk_at(index)
        return self.chunks[chunk][index - self._starts[chunk]]

    def between(self, first: int, last: int) -> list[str]:
        """Lines `first` up to, not including, `last`."""
        found: list[str] = []
        first, last = max(first, 0), min(last, self.count)
        while first < last:
            chunk = self._chunk_at(first)
            start = self._starts[chunk]
            part = self.chunks[chunk][first - start : last - start]
            found.extend(part)
            first += len(part)
        return found

    def replaced(self, first: int, last: int, new: Sequence[str]) -> Lines:
        """A table whose lines `first` up to, not including, `last` are `new`."""
        low = self._chunk_at(first)
        high = low if last - first <= 1 else self._chunk_at(last - 1)
        head = self.chunks[low][: first - self._starts[low]]
        tail = self.chunks[high][last - self._starts[high] :]
        merged = (*head, *new, *tail)
        if len(merged) < CHUNK_LINES // 4 and high + 1 < len(self.chunks):
            high += 1  # a chunk worn thin joins its neighbour
            merged += self.chunks[high]
        chunks = list(self.chunks)
        chunks[low : high + 1] = _chunked(merged)
        stays = low == high and last - first == len(new) and len(chunks) == len(self.chunks)
        made = Lines(chunks, self if stays else None)
        for name, note in self._notes.items():
            if note.last <= first or (note.first >= last and made.count == self.count):
                made._notes[name] = note
        return made

    def noted(self, name: str) -> Note | None:
        """The newest note of a name that still holds."""
        return self._notes.get(name)

    def note(self, name: str, first: int, last: int, value: object) -> None:
        """Note what depends on lines `first` up to, not including, `last`, and on nothing else."""
        self._notes[name] = Note(first, last, value)

    def text(self) -> str:
        """The whole text, endings as they are."""
        return "".join("".join(chunk) for chunk in self.chunks)

    def differing(self, other: Lines) -> tuple[int, list[str], list[str]]:
        """Where two tables begin to differ by chunks, and the lines of each that may differ.

        Chunks that both share are the same objects and compare at once: O(chunks + lines of a
        chunk) after an edit.
        """
        before = alike(self.chunks, other.chunks)
        mine, theirs = self.chunks[before:], other.chunks[before:]
        behind = alike(mine[::-1], theirs[::-1])
        first = sum(map(len, self.chunks[:before]))
        runs = (chunks[: len(chunks) - behind] for chunks in (mine, theirs))
        mine, theirs = ([line for chunk in run for line in chunk] for run in runs)
        return first, mine, theirs

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lines) or self.count != other.count:
            return False
        _, mine, theirs = self.differing(other)
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def _chunk_at(self, index: int) -> int:
        if not 0 <= index < self.count:
            raise IndexError(f"line {index} of {self.count}")
        return bisect_right(self._starts, index) - 1


def _chunked(lines: Sequence[str]) -> list[tuple[str, ...]]:
    if len(lines) <= 2 * CHUNK_LINES:
        return [tuple(lines)] if lines else []
    return [tuple(lines[i : i + CHUNK_LINES]) for i in range(0, len(lines), CHUNK_LINES)]
