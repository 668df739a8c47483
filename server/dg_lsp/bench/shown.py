"""An inline completion as an editor reads it, and whether it fits the text that it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dg_lsp.lines import Lines, body_of
from dg_lsp.positions import Encoding, Position, Range, character_of, column_of
from dg_lsp.prompts.view import place_of


class Snapshot(msgspec.Struct, frozen=True):
    """The author's text and cursor at one version."""

    text: str
    cursor: int


class Item(msgspec.Struct, frozen=True, rename="camel"):
    """InlineCompletionItem."""

    insert_text: str
    range: Range | None = None
    command: dict[str, Any] | None = None


class ItemList(msgspec.Struct, frozen=True):
    """InlineCompletionList."""

    items: list[Item]


class Suggestion(msgspec.Struct, frozen=True):
    """A text for a range, in code points, of one version."""

    version: int
    start: int
    end: int
    text: str
    command: dict[str, Any] | None


def read_suggestion(
    result: object, snapshots: Mapping[int, Snapshot], asked: int, newest: int
) -> Suggestion | str | None:
    """The first item of a result; None without one, a sentence for what cannot be read.

    An item that does not say its version is for the one that was asked about.
    """
    if result is None:
        return None
    try:
        items = msgspec.convert(result, ItemList).items
    except msgspec.ValidationError as error:
        return f"The result is no inline completion list: {error}."
    if not items:
        return None
    item = items[0]
    version = _version_of(item, asked)
    snapshot = snapshots.get(version)
    if snapshot is None:
        return f"The answer is for version {version}, which was never sent; {newest} is the newest."
    if item.range is None:
        start = end = snapshot.cursor
    else:
        lines = Lines.of(snapshot.text)
        start, end = (offset_at(lines, p) for p in (item.range.start, item.range.end))
        if start is None or end is None:
            return f"The range {item.range} does not lie in version {version}."
    return Suggestion(version, start, end, item.insert_text, item.command)


def misfit(
    suggestion: Suggestion, snapshots: Mapping[int, Snapshot], asked: int, newest: int | None
) -> str:
    """Why a suggestion must not be drawn, empty when it may be.

    With `newest` the editor's text is known: nothing was typed since the request. Without it the
    answer came to a request that was overtaken and is held to the version that it names.
    """
    if suggestion.version < asked:
        return f"The answer is for version {suggestion.version}, older than the request."
    if newest is not None and suggestion.version != newest:
        return f"The answer is for version {suggestion.version}, not for {newest}."
    text, cursor = snapshots[suggestion.version].text, snapshots[suggestion.version].cursor
    start, end = suggestion.start, suggestion.end
    if not start <= cursor <= end:
        return f"The range {start} to {end} does not hold the cursor at {cursor}."
    if "\n" in text[start:end]:
        return "The range covers more than one line."
    if not suggestion.text.startswith(text[start:cursor]):
        return "The text does not begin with what it covers before the cursor."
    if not suggestion.text:
        return "The text is empty."
    return ""


def position_at(text: str, offset: int) -> dict[str, int]:
    """An offset as a position in UTF-16 units."""
    line, column = place_of(text, offset)
    # `place_of` splits the text as well; a session's texts are small.
    body = body_of(Lines.of(text)[line])
    return {"line": line, "character": character_of(body, column, Encoding.UTF16)}


def offset_at(lines: Lines, position: Position) -> int | None:
    """The offset of a position, None when it does not lie in the text."""
    if not 0 <= position.line < lines.count:
        return None
    body = body_of(lines[position.line])
    column = column_of(body, position.character, Encoding.UTF16)
    if character_of(body, column, Encoding.UTF16) != position.character:
        return None
    return sum(map(len, lines.between(0, position.line))) + column


def _version_of(item: Item, asked: int) -> int:
    arguments = (item.command or {}).get("arguments")
    if isinstance(arguments, list) and arguments:
        first = cast("list[object]", arguments)[0]
        if isinstance(first, dict):
            stated = cast("dict[str, object]", first).get("version")
            if isinstance(stated, int):
                return stated
    return asked
