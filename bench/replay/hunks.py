"""Where two versions of a Python file differ, as changes that an author would have typed."""

from __future__ import annotations

import ast
import difflib
import re

import msgspec

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_SAME_LINE = 0.6
"""From this similarity on, a changed line is edited in place, not typed anew."""


class Change(msgspec.Struct, frozen=True):
    """Old text from `start` to `end` in code points, and what is typed in its place."""

    start: int
    end: int
    text: str


class Hunk(msgspec.Struct, frozen=True):
    """Neighbouring changes, in the order of the file."""

    changes: list[Change]
    code_share: float
    """How much of the new lines is code, not comment or documentation."""

    @property
    def typed(self) -> int:
        """Characters that have to be typed."""
        return sum(len(change.text) for change in self.changes)


def hunks_between(old: str, new: str) -> list[Hunk]:
    """Every difference of two versions, in the order of the file."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    offsets = [0]
    for line in before:
        offsets.append(offsets[-1] + len(line))
    prose = prose_lines(new)
    found: list[Hunk] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        gone, come = before[i1:i2], after[j1:j2]
        if len(gone) == len(come) and all(map(_alike, gone, come)):
            changes = [
                change
                for number, pair in enumerate(zip(gone, come, strict=True))
                for change in _within_line(*pair, offsets[i1 + number])
            ]
        else:
            changes = [_whole_lines(offsets[i1], offsets[i2], "".join(come))]
        code = [n for n in range(j1, j2) if n not in prose and after[n].strip()]
        found.append(Hunk(changes, len(code) / max(1, j2 - j1)))
    return found


def _alike(old: str, new: str) -> bool:
    return difflib.SequenceMatcher(None, old, new, autojunk=False).ratio() >= _SAME_LINE


def _within_line(old: str, new: str, offset: int) -> list[Change]:
    """Word by word, as a cursor put into the line would change it."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    starts = [0]
    for token in a:
        starts.append(starts[-1] + len(token))
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [
        Change(offset + starts[i1], offset + starts[i2], "".join(b[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def _whole_lines(start: int, end: int, text: str) -> Change:
    """Lines begin behind the line break above them, where an author presses Enter."""
    if start == 0 or not text.endswith("\n"):
        return Change(start, end, text)
    return Change(start - 1, max(start - 1, end - 1), "\n" + text[:-1])


def prose_lines(text: str) -> set[int]:
    """Numbers, from zero, of the lines that are comments or belong to a bare string."""
    found = {n for n, line in enumerate(text.splitlines()) if line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.update(range(node.lineno - 1, (node.end_lineno or node.lineno)))
    return found
