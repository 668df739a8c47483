"""Text as an immutable table of lines that shares what an edit does not touch."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

CHUNK_LINES = 128
RUN_CHUNKS = 32
"""Lines of a chunk and chunks of a run; either may grow to twice as many before it is cut."""

_Item = TypeVar("_Item")
_Chunk = tuple[str, ...]
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


def alike_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """How many items both start with, and behind those end with."""
    head = alike(old, new)
    return head, alike(old[head:][::-1], new[head:][::-1])


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


class _Run:
    """Some chunks in a row, which edits share."""

    __slots__ = ("chunks", "count", "starts")

    def __init__(self, chunks: tuple[_Chunk, ...], alike: _Run | None = None) -> None:
        """`alike` is a run whose chunks are as long as these."""
        self.chunks = chunks
        if alike is None:
            self.starts = list(accumulate(map(len, chunks), initial=0))
            self.count = self.starts.pop()
        else:
            self.starts, self.count = alike.starts, alike.count

    def replaced(self, first: int, last: int, new: Sequence[str]) -> _Run:
        """A run whose lines `first` up to, not including, `last` are `new`."""
        chunks = self.chunks
        low = bisect_right(self.starts, first) - 1
        high = low if last - first <= 1 else bisect_right(self.starts, last - 1) - 1
        head = chunks[low][: first - self.starts[low]]
        tail = chunks[high][last - self.starts[high] :]
        merged = (*head, *new, *tail)
        if len(merged) < CHUNK_LINES // 4 and high + 1 < len(chunks):
            high += 1  # a chunk worn thin joins its neighbour
            merged += chunks[high]
        put = _cut(merged, CHUNK_LINES)
        stays = low == high and last - first == len(new) and len(put) == 1
        made = (*chunks[:low], *put, *chunks[high + 1 :])
        return _Run(made, self if stays else None)


class Lines:
    """A file's lines, each with its ending; every edit makes a new table.

    A tree of three levels: runs of chunks of lines. Making one from an edit costs O(lines edited +
    chunk + chunks of a run + runs), about the third root of a large file: what an edit copies it
    touches, and memory that nothing touched for some milliseconds is slow. Notes on lines that it
    leaves where they are go over to it.
    """

    __slots__ = ("_notes", "_runs", "_starts", "count")

    def __init__(self, chunks: Iterable[_Chunk]) -> None:
        """A table of these lines."""
        self._runs = _runs_of(tuple(chunks))
        self._starts, self.count = _starts_of(self._runs)
        self._notes: dict[str, Note] = {}

    @classmethod
    def of(cls, text: str) -> Lines:
        """The table of a whole text."""
        return cls(_cut(split_lines(text), CHUNK_LINES))

    @property
    def chunks(self) -> list[_Chunk]:
        """All lines, in pieces of moderate size."""
        return [chunk for run in self._runs for chunk in run.chunks]

    def __getitem__(self, index: int) -> str:
        at = self._run_at(index)
        run, index = self._runs[at], index - self._starts[at]
        at = bisect_right(run.starts, index) - 1
        return run.chunks[at][index - run.starts[at]]

    def between(self, first: int, last: int) -> list[str]:
        """Lines `first` up to, not including, `last`."""
        found: list[str] = []
        first, last = max(first, 0), min(last, self.count)
        while first < last:
            at = self._run_at(first)
            run, start = self._runs[at], self._starts[at]
            for chunk in range(bisect_right(run.starts, first - start) - 1, len(run.chunks)):
                begins = start + run.starts[chunk]
                part = run.chunks[chunk][first - begins : last - begins]
                found.extend(part)
                first += len(part)
                if first >= last:
                    break
        return found

    def replaced(self, first: int, last: int, new: Sequence[str]) -> Lines:
        """A table whose lines `first` up to, not including, `last` are `new`."""
        runs = self._runs
        low = self._run_at(first)
        high = low if last - first <= 1 else self._run_at(last - 1)
        run, start = runs[low], self._starts[low]
        if low < high:
            run = _Run(tuple(chunk for one in runs[low : high + 1] for chunk in one.chunks))
        put = run.replaced(first - start, last - start, new)
        if len(put.chunks) < RUN_CHUNKS // 4 and high + 1 < len(runs):
            high += 1  # as do runs
            put = _Run(put.chunks + runs[high].chunks)
        parts = (put,) if 0 < len(put.chunks) <= 2 * RUN_CHUNKS else _runs_of(put.chunks)
        made = Lines.__new__(Lines)
        made._runs = (*runs[:low], *parts, *runs[high + 1 :])
        if low == high and put.count == run.count and len(parts) == 1:
            made._starts, made.count = self._starts, self.count
        else:
            made._starts, made.count = _starts_of(made._runs)
        made._notes = {}
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

        What both share are the same objects and compare at once: O(runs + chunks of a run + lines
        of a chunk) after an edit.
        """
        before, mine, theirs = _unlike(self._runs, other._runs)
        first = sum(run.count for run in self._runs[:before])
        own, others = ([chunk for run in runs for chunk in run.chunks] for runs in (mine, theirs))
        before, left, right = _unlike(own, others)
        first += sum(map(len, own[:before]))
        olds, news = ([line for chunk in side for line in chunk] for side in (left, right))
        return first, olds, news

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lines) or self.count != other.count:
            return False
        _, mine, theirs = self.differing(other)
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def _run_at(self, index: int) -> int:
        if not 0 <= index < self.count:
            raise IndexError(f"line {index} of {self.count}")
        return bisect_right(self._starts, index) - 1


def _unlike(
    mine: Sequence[_Item], theirs: Sequence[_Item]
) -> tuple[int, Sequence[_Item], Sequence[_Item]]:
    """How many items both start with, and of each what lies between those and the shared end."""
    before, behind = alike_ends(mine, theirs)
    return before, mine[before : len(mine) - behind], theirs[before : len(theirs) - behind]


def _starts_of(runs: Sequence[_Run]) -> tuple[list[int], int]:
    """The first line of each run, and the count of all."""
    starts = list(accumulate([run.count for run in runs], initial=0))
    return starts, starts.pop()


def _runs_of(chunks: tuple[_Chunk, ...]) -> tuple[_Run, ...]:
    return tuple(map(_Run, _cut(chunks, RUN_CHUNKS)))


def _cut(items: Sequence[_Item], size: int) -> list[tuple[_Item, ...]]:
    """Pieces of a size, or all in one where that is twice as large at most."""
    if len(items) <= 2 * size:
        return [tuple(items)] if items else []
    return [tuple(items[i : i + size]) for i in range(0, len(items), size)]
