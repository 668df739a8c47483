"""Open documents: immutable values, each change a new one that shares what it did not touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from dg_lsp.lines import Lines, body_of, split_lines
from dg_lsp.positions import (
    Encoding,
    Position,
    Range,
    character_of,
    column_of,
    without_lone_surrogates,
)
from dg_lsp.uris import normalised


class ContentChange(msgspec.Struct, frozen=True):
    """New text for a range, or for the whole document without one."""

    text: str
    range: Range | None = None


class Document(msgspec.Struct, frozen=True, eq=False):
    """A document at one version; keeping it keeps that version's text."""

    uri: str
    """As the client spells it."""
    version: int
    language: str
    lines: Lines

    @classmethod
    def of(cls, uri: str, version: int, language: str, text: str) -> Document:
        """A document from its whole text."""
        return cls(uri, version, language, Lines.of(without_lone_surrogates(text)))

    def changed(
        self, changes: Iterable[ContentChange], version: int, encoding: Encoding
    ) -> Document:
        """The document after changes, each on top of the one before."""
        lines = self.lines
        for change in changes:
            lines = _applied(lines, change, encoding)
        return msgspec.structs.replace(self, lines=lines, version=version)

    def place(self, position: Position, encoding: Encoding) -> tuple[int, int]:
        """Line and column in code points of a position, clamped to the text."""
        return _place(self.lines, position, encoding)

    def position(self, line: int, column: int, encoding: Encoding) -> Position:
        """The position of a line and a column in code points."""
        return Position(line, character_of(body_of(self.lines[line]), column, encoding))


class DocumentStore:
    """The documents that the client has open, by normalised URI."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._documents.values()))

    def get(self, uri: str) -> Document | None:
        """The newest version of a document, None when it is not open."""
        return self._documents.get(normalised(uri))

    def put(self, document: Document) -> None:
        """Open a document, or replace it by its next version."""
        self._documents[normalised(document.uri)] = document

    def remove(self, uri: str) -> None:
        """Close a document; closing one that is not open does nothing."""
        self._documents.pop(normalised(uri), None)


def _place(lines: Lines, position: Position, encoding: Encoding) -> tuple[int, int]:
    if position.line < 0:
        return 0, 0
    if position.line >= lines.count:
        return lines.count - 1, len(body_of(lines[lines.count - 1]))
    body = body_of(lines[position.line])
    return position.line, column_of(body, position.character, encoding)


def _applied(lines: Lines, change: ContentChange, encoding: Encoding) -> Lines:
    text = without_lone_surrogates(change.text)
    if change.range is None:
        return Lines.of(text)
    first, start = last, end = _place(lines, change.range.start, encoding)
    if change.range.end != change.range.start:
        # A range given backwards means the same text.
        places = (first, start), _place(lines, change.range.end, encoding)
        (first, start), (last, end) = sorted(places)
    line = lines[first]
    joined = line[:start] + text + (line if last == first else lines[last])[end:]
    if joined.startswith("\n") and first > 0 and lines[first - 1].endswith("\r"):
        first -= 1  # the two characters are one line break from now on
        joined = lines[first] + joined
    new = split_lines(joined)
    if last + 1 < lines.count:
        new.pop()  # the empty line behind the last break is the line that follows already
    return lines.replaced(first, last + 1, new)


def typed_between(old: Document, new: Document, line: int, column: int) -> str | None:
    """What was typed at a place on one line of `old` to make `new`, None for any other change."""
    if old.lines.count != new.lines.count:
        return None
    before, after = old.lines[line], new.lines[line]
    grown = len(after) - len(before)
    typed = after[column : column + max(grown, 0)]
    if grown < 0 or before[:column] + typed + before[column:] != after:
        return None
    return typed if old.lines.replaced(line, line + 1, [after]) == new.lines else None
