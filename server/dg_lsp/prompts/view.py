"""What a prompt is made from: a window of text around the cursor, line breaks as `\\n`."""

from __future__ import annotations

import enum
from itertools import chain
from typing import NamedTuple, cast

import msgspec

from dg_lsp.lines import Lines, body_of, ending_of, split_lines

ANCHOR_LINES = 64
"""Windows start at line numbers that divide by this, so that typing does not move them."""
BEFORE_CHARS = 24_000
"""More text before the cursor than any prompt budget holds."""
AFTER_CHARS = 8_000
"""More text after the cursor than any prompt budget holds."""
NOTEBOOK = ".ipynb"
_LONG_LINE = 256
"""Characters of a line, of which as many in a row are no code that somebody wrote."""
_LONG_LINE_STEP = 4_096
_NONE_CAME = -(1 << 40)


class SnippetKind(enum.StrEnum):
    """Why a text from elsewhere may help."""

    DEFINITION = "definition"
    """Something that is used near the cursor."""
    CLASS = "class"
    """The class around the cursor, whose head is out of sight."""
    EDIT = "edit"
    """What was edited last."""
    NEIGHBOUR = "neighbour"
    """Lines of an open file that are like those around the cursor."""
    DIAGNOSTIC = "diagnostic"
    """What is wrong near the cursor, in words."""


class Snippet(msgspec.Struct, frozen=True):
    """Text from elsewhere, secrets masked, line breaks as `\\n`."""

    path: str
    """As people know it."""
    text: str
    kind: SnippetKind


class CursorView(msgspec.Struct, frozen=True):
    """The text on both sides of a cursor, as far as a prompt may need it."""

    path: str
    language: str
    before: str
    """Starts at a line whose number divides by ANCHOR_LINES, or inside an overlong line."""
    after: str
    at_start: bool
    """Whether `before` reaches back to the start of the file."""
    at_end: bool
    """Whether `after` reaches the end of the file."""
    newline: str = "\n"
    """The line break that the document uses; text shown to a model always has `\\n`."""
    context: tuple[Snippet, ...] = ()
    """What may help from elsewhere, the best first; a prompt takes what it has room for."""

    @property
    def in_notebook(self) -> bool:
        """Whether it is the text of a notebook's cells."""
        return self.path.endswith(NOTEBOOK)

    @property
    def line_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.before[self.before.rfind("\n") + 1 :]

    @property
    def line_after(self) -> str:
        """The cursor's line from the cursor on."""
        end = self.after.find("\n")
        return self.after if end < 0 else self.after[:end]


def view_at(
    lines: Lines,
    line: int,
    column: int,
    *,
    path: str,
    language: str,
    skip_to: int | None = None,
    context: tuple[Snippet, ...] = (),
) -> CursorView:
    """The window around a line and a column in code points, both from zero.

    With `skip_to`, what follows starts at the end of the line before that one: the lines
    between belong to neither side (they are being edited).
    """
    here = lines[line]
    above = _above(lines, line, column)
    before = above.text + unix(here[:column])
    cut = max(0, len(before) - 2 * BEFORE_CHARS)
    cut = -(-cut // _LONG_LINE_STEP) * _LONG_LINE_STEP

    if skip_to is None:
        rest, following = here[column:], line + 1
    else:
        rest, following = ending_of(lines[skip_to - 1]), skip_to
    below = _below(lines, following, len(rest))
    after = unix(rest) + below.text
    return CursorView(
        path=path,
        language=language,
        before=before[cut:],
        after=after[:AFTER_CHARS],
        at_start=above.end == 0 and cut == 0,
        at_end=below.end >= lines.count and len(after) <= AFTER_CHARS,
        newline=newline_of(lines),
        context=context,
    )


class _Run(NamedTuple):
    """Lines on one side of a cursor's, ANCHOR_LINES at a time until there are enough characters."""

    end: int
    """The line furthest away, or behind it."""
    text: str
    size: int
    """Characters, line breaks as they are."""
    less: int
    """Characters without the lines that came last; far below zero where none came."""

    def is_enough(self, beside: int, wanted: int, *, is_all: bool) -> bool:
        """Whether just these lines are needed with as many characters `beside` them."""
        return self.less + beside < wanted and (is_all or self.size + beside >= wanted)


def _above(lines: Lines, line: int, column: int) -> _Run:
    """The lines above one of which the first `column` characters count as well.

    Noted, for they stay while somebody types below.
    """
    note = lines.noted("above")
    if note is not None and note.last == line:
        run = cast("_Run", note.value)
        if run.is_enough(column, BEFORE_CHARS, is_all=run.end == 0):
            return run
    first = line - line % ANCHOR_LINES
    parts = [lines.between(first, line)]
    size, less = sum(map(len, parts[0])), _NONE_CAME
    while size + column < BEFORE_CHARS and first > 0:
        parts.append(lines.between(first - ANCHOR_LINES, first))
        first -= ANCHOR_LINES
        size, less = size + sum(map(len, parts[-1])), size
    text = unix("".join(chain.from_iterable(reversed(parts))))
    run = _Run(first, text, size, less)
    lines.note("above", first, line, run)
    return run


def _below(lines: Lines, following: int, beside: int) -> _Run:
    """As `_above`, for lines from one on."""
    note = lines.noted("below")
    if note is not None and note.first == following:
        run = cast("_Run", note.value)
        if run.is_enough(beside, AFTER_CHARS, is_all=run.end >= lines.count):
            return run
    parts: list[str] = []
    last, size, less = following, 0, _NONE_CAME
    while size + beside < AFTER_CHARS and last < lines.count:
        more = lines.between(last, last + ANCHOR_LINES)
        parts += more
        last += len(more)
        size, less = size + sum(map(len, more)), size
    run = _Run(last, unix("".join(parts)), size, less)
    lines.note("below", following, last, run)
    return run


def near(view: CursorView, before: int, after: int) -> CursorView:
    """As much of a view as reaches so many characters to both sides of the cursor, in whole lines.

    What is left still starts at a line whose number divides by ANCHOR_LINES. Of overlong lines only
    parts are left: a prompt has no room for more, and to encode a megabyte takes a second.
    """
    least = len(view.before) - before
    cut = _anchored_cut(view.before, least)
    if least - cut > ANCHOR_LINES * _LONG_LINE:
        cut = least - least % _LONG_LINE_STEP  # so that typing does not move it
    end = view.after.find("\n", after)
    if not after <= end <= after + _LONG_LINE_STEP:
        end = min(after + _LONG_LINE_STEP, len(view.after))
    if not cut and end == len(view.after):
        return view
    return msgspec.structs.replace(
        view,
        before=view.before[cut:],
        after=view.after[:end],
        at_start=view.at_start and not cut,
        at_end=view.at_end and end == len(view.after),
    )


def _anchored_cut(text: str, most: int) -> int:
    """The offset of a line of `text`, by a number that divides by ANCHOR_LINES, up to `most`."""
    cut = most
    for _ in range(text.count("\n", 0, max(most, 0)) % ANCHOR_LINES + 1):
        cut = text.rfind("\n", 0, max(cut, 0))
    return cut + 1


def unix(text: str) -> str:
    r"""`text` with every line break as `\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def newline_of(lines: Lines) -> str:
    r"""The line break of the first line, `\n` for a file of one line."""
    return ending_of(lines[0]) or "\n"


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from zero, of an offset in code points (clamped; never inside `\\r\\n`)."""
    offset = min(max(offset, 0), len(text))
    if text[max(offset - 1, 0) : offset + 1] == "\r\n":
        offset -= 1
    before = split_lines(text[:offset])
    return len(before) - 1, len(body_of(before[-1]))
