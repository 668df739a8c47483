"""What an edit must leave as the file has it: tabs or blanks, and the line breaks."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from dg_lsp.lines import body_of, ending_of, split_lines

TAB_LANGUAGES = frozenset({"go", "makefile"})
"""Languages whose files have tabs, whatever stands in them so far."""
_WIDTHS = (4, 2, 8, 3)
"""Blanks of one indentation step, the likelier first."""
_DEFAULT_WIDTH = 4


class Habit(msgspec.Struct, frozen=True):
    """How a file indents."""

    tabs: bool
    width: int
    """Blanks that one step takes, or that one tab stands for."""

    @property
    def step(self) -> str:
        """One step of indentation."""
        return "\t" if self.tabs else " " * self.width


def habit_of(lines: Iterable[str], language: str) -> Habit:
    """The habit that most of the indented lines show; four blanks where none is indented."""
    widths: Counter[int] = Counter()
    tabs = blanks = 0
    before = 0
    for line in lines:
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        if not line.strip():
            continue
        tabs += indent.startswith("\t")
        blanks += indent.startswith("  ")
        if "\t" not in indent:
            step = abs(len(indent) - before)
            before = len(indent)
            widths[step] += step in _WIDTHS
    wanted = language in TAB_LANGUAGES or tabs > blanks
    common = [width for width, count in widths.most_common() if count]
    return Habit(wanted, _DEFAULT_WIDTH if wanted or not common else common[0])


def in_habit(new: str, old: str, habit: Habit) -> str:
    r"""`new` with the indentation of changed lines written as the file does it; breaks are `\n`.

    Lines that `old` has as well stay as they are.
    """
    kept = set(old.split("\n"))
    return "\n".join(line if line in kept else _indented(line, habit) for line in new.split("\n"))


def put_in_habit(text: str, line_before: str, habit: Habit) -> str:
    r"""`text` that goes behind `line_before`, indented as the file does it; breaks are `\n`."""
    first, *others = text.split("\n")
    if not line_before.strip():
        whole = _indented(line_before + first, habit)
        if not whole.startswith(line_before):
            return text  # the line itself is indented another way already
        first = whole[len(line_before) :]
    return "\n".join([first, *(_indented(line, habit) for line in others)])


def with_endings_of(new: str, old: Sequence[str], default: str) -> str:
    r"""`new`, whose breaks are `\n`, with the line breaks of the lines that it replaces.

    `old` are lines with their endings. A line that stays keeps its own; new ones take the
    commonest of the old lines, `default` where these have none.
    """
    endings = Counter(ending for line in old if (ending := ending_of(line)))
    common = endings.most_common(1)[0][0] if endings else default
    if len(endings) < 2:
        return new.replace("\n", common)
    lines = new.split("\n")
    chosen = [common] * len(lines)
    matcher = difflib.SequenceMatcher(None, [body_of(line) for line in old], lines, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            chosen[block.b + step] = ending_of(old[block.a + step]) or common
    parts = [line + ending for line, ending in zip(lines[:-1], chosen[:-1], strict=True)]
    return "".join(parts) + lines[-1]


def habit_around(text: str, language: str) -> Habit:
    """`habit_of` a text with any line breaks."""
    return habit_of((body_of(line) for line in split_lines(text)), language)


def _indented(line: str, habit: Habit) -> str:
    body = line.lstrip(" \t")
    indent = line[: len(line) - len(body)]
    if habit.tabs == ("\t" in indent) and (not habit.tabs or " " not in indent):
        return line
    columns = len(indent.expandtabs(habit.width))
    if not habit.tabs:
        return " " * columns + body
    # What is left of a step aligns with something above, so it stays blanks.
    return "\t" * (columns // habit.width) + " " * (columns % habit.width) + body
