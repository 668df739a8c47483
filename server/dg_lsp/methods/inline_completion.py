"""textDocument/inlineCompletion: ghost text at the cursor."""

from __future__ import annotations

import asyncio

import msgspec
from dg_engine.engine import EngineError
from dg_engine.job import DoneKind
from lsprotocol import types

from dg_lsp.commands import accepted
from dg_lsp.completion import Completion
from dg_lsp.documents import Document, typed_between
from dg_lsp.methods.text import DocumentId
from dg_lsp.positions import Position
from dg_lsp.prompts.view import view_at
from dg_lsp.session import Session
from dg_lsp.uris import normalised, shown_path

INVOKED = 1
"""The user asked; any other kind (clients send 0 or 2) means typing."""
CHOICES = 3
"""How many texts an invoked request offers, where the model has that many."""


class Context(msgspec.Struct, frozen=True, rename="camel"):
    """InlineCompletionContext."""

    trigger_kind: int = 0


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """InlineCompletionParams, with the version that some clients add to the document."""

    text_document: DocumentId
    position: Position
    context: Context = Context()


async def handle(session: Session, params: Params) -> types.InlineCompletionList:
    """Suggest text for the newest version of the document; an empty list when there is none."""
    uri = params.text_document.uri
    document = session.documents.get(uri)
    stated = params.text_document.version
    if document is None or (stated is not None and stated != document.version):
        return _nothing()
    with session.flights.begin(normalised(uri)) as flight:
        try:
            return await _suggest(session, params, document)
        except asyncio.CancelledError:
            if flight.superseded:
                return _nothing()
            raise


async def _suggest(
    session: Session, params: Params, document: Document
) -> types.InlineCompletionList:
    loop = asyncio.get_running_loop()
    invoked = params.context.trigger_kind == INVOKED
    configuration = session.configuration
    limit = configuration.invoked_deadline_ms if invoked else configuration.automatic_deadline_ms
    started = loop.time()
    try:
        completer = await session.completer(limit)
    except EngineError:
        return _nothing()  # the status says that the model is loading, or why it does not
    line, column = document.place(params.position, session.encoding)
    completion = await completer.complete_at(
        view_at(
            document.lines,
            line,
            column,
            path=shown_path(document.uri, session.editor.roots),
            language=document.language,
        ),
        deadline_ms=max(1, limit - round((loop.time() - started) * 1e3)),
        alternatives=CHOICES if invoked else 1,
    )
    session.status.note(_note(completion))
    return _items(session, document, line, column, completion)


def _items(
    session: Session, asked: Document, line: int, column: int, completion: Completion
) -> types.InlineCompletionList:
    """The texts as items for the newest version, which may be newer than the one asked for."""
    newest = session.documents.get(asked.uri)
    if newest is None:
        return _nothing()
    typed = "" if newest is asked else typed_between(asked, newest, line, column)
    if typed is None:
        return _nothing()
    cursor = newest.position(line, column + len(typed), session.encoding)
    place = types.Position(line=cursor.line, character=cursor.character)
    texts = [completion.insert, *completion.alternatives]
    return types.InlineCompletionList(
        items=[
            types.InlineCompletionItem(
                insert_text=text[len(typed) :],
                range=types.Range(start=place, end=place),
                command=accepted.signal(newest.uri, newest.version),
            )
            for text in texts
            if text.startswith(typed) and len(text) > len(typed)
        ]
    )


def _note(completion: Completion) -> str:
    """What the status should say of a completion; a text that is merely not useful is silent."""
    failed = completion.done in (DoneKind.ERROR, DoneKind.DEADLINE)
    return completion.reason if failed and not completion.insert else ""


def _nothing() -> types.InlineCompletionList:
    return types.InlineCompletionList(items=[])
