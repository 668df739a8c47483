"""Marks: three underscores on their own, each a hole that the user left to be filled."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from dg_lsp.lines import Lines
from dg_lsp.prompts.view import unix

MARK = "___"
_MARK = re.compile(r"(?<!\w)___(?!\w)")


class Mark(msgspec.Struct, frozen=True, order=True):
    """One mark, in code points from zero."""

    line: int
    start: int

    @property
    def end(self) -> int:
        """The column behind it."""
        return self.start + len(MARK)


def marks_in(lines: Lines, first: int = 0, last: int | None = None) -> list[Mark]:
    """The marks on the lines `first` to `last`, both included, in reading order."""
    stop = lines.count if last is None else last + 1
    return [
        Mark(first + offset, match.start())
        for offset, line in enumerate(lines.between(first, stop))
        if MARK in line
        for match in _MARK.finditer(line)
    ]


def first_mark(text: str) -> int:
    """Where the first mark in `text` begins, its length when there is none."""
    match = _MARK.search(text)
    return match.start() if match else len(text)


def between(lines: Lines, one: Mark, other: Mark) -> str:
    r"""The text from the end of a mark to the start of a later one, line breaks as `\n`."""
    if one.line == other.line:
        return lines[one.line][one.end : other.start]
    middle = "".join(lines.between(one.line + 1, other.line))
    return unix(lines[one.line][one.end :] + middle + lines[other.line][: other.start])


def grouped(
    lines: Lines, marks: Sequence[Mark], room: int, widest: int, count: Callable[[str], int]
) -> list[list[Mark]]:
    """Runs of marks that one canvas of `room` tokens holds, each mark up to `widest` tokens wide.

    `count` counts the tokens of what stands between; it is not asked about marks so many lines
    apart that the line breaks alone would not fit.
    """
    groups: list[list[Mark]] = []
    used = 0
    for mark in marks:
        if groups:
            last = groups[-1][-1]
            if mark.line - last.line < room:
                more = count(between(lines, last, mark)) + widest
                if used + more <= room:
                    groups[-1].append(mark)
                    used += more
                    continue
        groups.append([mark])
        used = widest
    return groups


def filled(lines: Lines, marks: Sequence[Mark], texts: Sequence[str]) -> Lines:
    """`lines` with texts of one line in place of marks; an empty text leaves its mark."""
    for mark, text in sorted(zip(marks, texts, strict=True), reverse=True):
        if text:
            line = lines[mark.line]
            new = line[: mark.start] + text + line[mark.end :]
            lines = lines.replaced(mark.line, mark.line + 1, [new])
    return lines


def shifted(mark: Mark, marks: Sequence[Mark], texts: Sequence[str]) -> Mark:
    """Where a mark stands once the `marks` before it on its line are filled."""
    grown = sum(
        len(text) - len(MARK)
        for other, text in zip(marks, texts, strict=True)
        if text and other.line == mark.line and other.start < mark.start
    )
    return Mark(mark.line, mark.start + grown)
