"""Recorded typing sessions: a text, and what an author did to it key by key.

Offsets and counts are code points. An insertion and a deletion happen at the cursor and leave it
behind what was inserted or where text was taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec


class Insert(msgspec.Struct, frozen=True, tag_field="kind", tag="insert"):
    """Text at the cursor; a line break comes with the indentation that editors add."""

    at_ms: int
    text: str


class Delete(msgspec.Struct, frozen=True, tag_field="kind", tag="delete", omit_defaults=True):
    """Text taken away around the cursor: a backspace, or a selection."""

    at_ms: int
    before: int = 0
    after: int = 0


class Move(msgspec.Struct, frozen=True, tag_field="kind", tag="move"):
    """The cursor somewhere else."""

    at_ms: int
    offset: int


class Pause(msgspec.Struct, frozen=True, tag_field="kind", tag="pause"):
    """The author thinks for `ms`; the next event's time includes it."""

    at_ms: int
    ms: int


class AcceptPolicy(msgspec.Struct, frozen=True, tag_field="kind", tag="accept-policy"):
    """From now on the author takes a suggestion whose first line is what they typed next.

    It must say at least `min_chars` characters that are not blank. More lines than the first are
    taken when the author typed those too.
    """

    at_ms: int
    min_chars: int


Event = Insert | Delete | Move | Pause | AcceptPolicy


class Session(msgspec.Struct, frozen=True):
    """One recording, with where its text comes from."""

    name: str
    licence: str
    source: str
    """The package and the two versions between which the change was made."""
    path: str
    text: str
    events: list[Event]


class Buffer:
    """A text with a cursor, changed by events."""

    def __init__(self, text: str, cursor: int = 0) -> None:
        self.text = text
        self.cursor = cursor

    def replace(self, start: int, end: int, text: str) -> None:
        """Put `text` in place of a range, with the cursor behind it."""
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)

    def apply(self, event: Event) -> tuple[int, int, str] | None:
        """Do what the author did; the replaced range and its new text, None when none was."""
        match event:
            case Insert(text=text):
                change = (self.cursor, self.cursor, text)
            case Delete(before=before, after=after):
                change = (self.cursor - before, self.cursor + after, "")
            case Move(offset=offset):
                self.cursor = offset
                return None
            case Pause() | AcceptPolicy():
                return None
        self.replace(*change)
        return change


def typed_later(
    events: Sequence[Event], start: int, buffer: Buffer, wanted: str, cursor: int
) -> int | None:
    """The event after which the author had `wanted` with this cursor, from `start` on.

    Typing errors that were mended on the way do not matter; a jump elsewhere ends the search.
    """
    ahead = Buffer(buffer.text, buffer.cursor)
    for index in range(start, len(events)):
        if isinstance(events[index], Move) or len(ahead.text) > len(wanted) + _DETOUR_CHARS:
            return None
        ahead.apply(events[index])
        if ahead.cursor == cursor and ahead.text == wanted:
            return index
    return None


_DETOUR_CHARS = 8
"""How far a mended typing error may lead beyond the wanted text."""


def read_sessions(folder: Path) -> list[Session]:
    """Every `*.json` of a folder by name; raises ValueError with one sentence."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise ValueError(f"{folder} holds no recorded session (*.json).")
    found: list[Session] = []
    for path in paths:
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Session))
        except (OSError, msgspec.MsgspecError) as error:
            raise ValueError(f"{path} is not a recorded session: {error}.") from error
    return found
