"""What commands that change a document answer, and how they change it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from dg_engine.engine import EngineError
from lsprotocol import types

from dg_lsp.completion import Completer
from dg_lsp.documents import Document
from dg_lsp.flights import Flight
from dg_lsp.positions import Position
from dg_lsp.session import Session
from dg_lsp.uris import normalised


class Result(msgspec.Struct, frozen=True):
    """Whether the document was changed, and one sentence when it was not."""

    applied: bool
    reason: str = ""
    steps: int = 0
    forwards: int = 0
    ms: dict[str, float] = {}
    id: str = ""
    """The edit that was shown, for dg.acceptEdit and dg.discardEdit."""
    pending: bool = False
    """Whether that edit may be accepted now."""


class Replacement(msgspec.Struct, frozen=True):
    """New text for a range, in code points of one version."""

    line: int
    column: int
    last_line: int
    last_column: int
    text: str


def refused(reason: str) -> object:
    """The answer of a command that did not get as far as the engine."""
    return msgspec.to_builtins(Result(applied=False, reason=reason))


def opened(session: Session, uri: str, version: int | None, stale: str) -> Document | str:
    """The document that a command may work on, or why it may not; `stale` for another version."""
    document = session.documents.get(uri)
    if document is None:
        return "The document is not open."
    decision = session.may_complete(document.uri)
    if not decision.allowed:
        return decision.reason
    return stale if version is not None and version != document.version else document


async def worked_on(
    session: Session,
    document: Document,
    work: Callable[[Completer], Awaitable[Result]],
    on_flight: Callable[[Flight], None] = lambda flight: None,
) -> Result:
    """Run `work` as a flight of its document: a document that is closed ends it with an answer."""
    with session.flights.begin(document=normalised(document.uri)) as flight:
        on_flight(flight)
        try:
            configuration = session.configuration_of(document.uri)
            return await work(
                await session.completer(configuration, configuration.edit_deadline_ms)
            )
        except EngineError as error:
            return Result(applied=False, reason=str(error))
        except asyncio.CancelledError:
            if flight.ended_because:
                return Result(applied=False, reason=flight.ended_because)
            raise


async def replace(
    session: Session, document: Document, replacements: Sequence[Replacement], label: str
) -> str:
    """Replace ranges in the version that `document` is, at once; why not, empty when it was done.

    The check is ours as well as the editor's, for not every editor takes versioned edits.
    """
    newest = session.documents.get(document.uri)
    if newest is None or newest.version != document.version:
        return "The document changed meanwhile, so nothing was applied; ask again."
    if not session.editor.applies_edits:
        return "This editor takes no edits from the server (workspace/applyEdit)."

    def position(line: int, column: int) -> types.Position:
        found: Position = document.position(line, column, session.encoding)
        return types.Position(line=found.line, character=found.character)

    edits = [
        types.TextEdit(
            range=types.Range(
                start=position(new.line, new.column),
                end=position(new.last_line, new.last_column),
            ),
            new_text=new.text,
        )
        for new in replacements
    ]
    return await session.editor.apply(label, document.uri, document.version, edits)
