"""Positions in text as editors count them: a line, and a character in UTF-8, 16 or 32 units."""

from __future__ import annotations

import enum

import msgspec


class Encoding(enum.StrEnum):
    """The unit of `Position.character`, agreed on at initialize (LSP 3.17, positionEncoding)."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Position(msgspec.Struct, frozen=True, order=True):
    """A place between two characters; both numbers count from zero."""

    line: int
    character: int


class Range(msgspec.Struct, frozen=True):
    """From `start` up to, not including, `end`."""

    start: Position
    end: Position


_UNIT_BYTES = {Encoding.UTF8: 1, Encoding.UTF16: 2}
_CODEC = {Encoding.UTF8: "utf-8", Encoding.UTF16: "utf-16-le"}


def column_of(line: str, character: int, encoding: Encoding) -> int:
    """The column in code points of `character` units into `line` (which has no line break).

    Past the end is the end; inside a code point is its start.
    """
    character = max(character, 0)
    if encoding is Encoding.UTF32 or line.isascii():
        return min(character, len(line))
    # A code point has at least one unit, so only the first `character` of them matter; a cut
    # code point is dropped by "ignore".
    units = line[:character].encode(_CODEC[encoding])[: character * _UNIT_BYTES[encoding]]
    return len(units.decode(_CODEC[encoding], "ignore"))


def character_of(line: str, column: int, encoding: Encoding) -> int:
    """How many units the first `column` code points of `line` take."""
    head = line[: max(column, 0)]
    if encoding is Encoding.UTF32 or head.isascii():
        return len(head)
    return len(head.encode(_CODEC[encoding])) // _UNIT_BYTES[encoding]


def without_lone_surrogates(text: str) -> str:
    """`text` with half surrogate pairs replaced by U+FFFD, which is as long in every encoding.

    Editors may send half an emoji; neither a tokenizer nor UTF-8 can hold it.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
