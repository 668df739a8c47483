"""What a prompt is made from: a window of text around the cursor, line breaks as `\\n`."""

from __future__ import annotations

import enum

import msgspec

from dg_lsp.lines import Lines, body_of, ending_of, split_lines

ANCHOR_LINES = 64
"""Windows start at line numbers that divide by this, so that typing does not move them."""
BEFORE_CHARS = 24_000
"""More text before the cursor than any prompt budget holds."""
AFTER_CHARS = 8_000
"""More text after the cursor than any prompt budget holds."""
NOTEBOOK = ".ipynb"
_LONG_LINE_STEP = 4_096


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
    first = line - line % ANCHOR_LINES
    parts = [*lines.between(first, line), here[:column]]
    size = sum(map(len, parts))
    while size < BEFORE_CHARS and first > 0:
        more = lines.between(first - ANCHOR_LINES, first)
        parts[:0] = more
        first -= ANCHOR_LINES
        size += sum(map(len, more))
    before = unix("".join(parts))
    cut = max(0, len(before) - 2 * BEFORE_CHARS)
    cut = -(-cut // _LONG_LINE_STEP) * _LONG_LINE_STEP

    if skip_to is None:
        rest, following = here[column:], line + 1
    else:
        rest, following = ending_of(lines[skip_to - 1]), skip_to
    tail = [rest]
    size = len(rest)
    while size < AFTER_CHARS and following < lines.count:
        more = lines.between(following, following + ANCHOR_LINES)
        tail.extend(more)
        following += len(more)
        size += sum(map(len, more))
    after = unix("".join(tail))
    return CursorView(
        path=path,
        language=language,
        before=before[cut:],
        after=after[:AFTER_CHARS],
        at_start=first == 0 and cut == 0,
        at_end=following >= lines.count and len(after) <= AFTER_CHARS,
        newline=newline_of(lines),
        context=context,
    )


def near(view: CursorView, before: int, after: int) -> CursorView:
    """As much of a view as reaches so many characters to both sides of the cursor, in whole lines.

    What is left still starts at a line whose number divides by ANCHOR_LINES.
    """
    cut = _anchored_cut(view.before, len(view.before) - before)
    end = view.after.find("\n", after)
    if not cut and end < 0:
        return view
    return msgspec.structs.replace(
        view,
        before=view.before[cut:],
        after=view.after if end < 0 else view.after[:end],
        at_start=view.at_start and not cut,
        at_end=view.at_end and end < 0,
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
