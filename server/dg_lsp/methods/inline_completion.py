"""textDocument/inlineCompletion: ghost text at the cursor."""

from __future__ import annotations

import asyncio
import time

import msgspec
from dg_engine.engine import EngineError

from dg_lsp.commands import accepted
from dg_lsp.commands.accepted import Command
from dg_lsp.methods.text import DocumentId
from dg_lsp.notebooks import ALONE
from dg_lsp.positions import Position, Range
from dg_lsp.restraint import confidence_wanted
from dg_lsp.session import Session
from dg_lsp.shown.desk import Request, Served
from dg_lsp.silences import (
    CHANGED,
    NOT_OPEN,
    OLDER,
    PAUSED,
    SUPERSEDED,
    of_completion,
    unsure,
    without_engine,
)
from dg_lsp.status import Silence, Why
from dg_lsp.uris import normalised

INVOKED = 1
"""The user asked; any other kind (clients send 0 or 2) means typing."""


class Context(msgspec.Struct, frozen=True, rename="camel"):
    """InlineCompletionContext."""

    trigger_kind: int = 0


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """InlineCompletionParams, with the version that some clients add to the document."""

    text_document: DocumentId
    position: Position
    context: Context = Context()


class Item(msgspec.Struct, frozen=True, rename="camel"):
    """InlineCompletionItem."""

    insert_text: str
    range: Range
    command: Command


class Items(msgspec.Struct, frozen=True):
    """InlineCompletionList, as it is written."""

    items: list[Item]


def on_receipt(session: Session, params: Params) -> Request | Silence:
    """The cursor in the version that it was sent for, or why there is none.

    What is typed right behind the request may be read before the request is handled.
    """
    document = session.documents.get(params.text_document.uri)
    stated = params.text_document.version
    if document is None:
        return NOT_OPEN
    if stated is not None and stated != document.version:
        return OLDER
    line, column = document.place(params.position, session.encoding)
    return Request(
        document,
        line,
        column,
        path=session.shown_path(document.uri),
        invoked=params.context.trigger_kind == INVOKED,
        around=session.notebooks.around(document),
        read_at=time.monotonic(),
    )


async def handle(session: Session, request: Request | Silence) -> Items:
    """Suggest text for the newest version of the document; an empty list when there is none.

    Why there is none is in the session's status.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    found = request if isinstance(request, Silence) else await _found(session, request)
    if isinstance(found, Silence):
        session.status.silent(found)
        return Items([])
    session.status.answered((loop.time() - started) * 1e3)
    return _items(session, found)


async def _found(session: Session, request: Request) -> Served | Silence:
    uri = request.document.uri
    decision = session.may_complete(uri)
    if not decision.allowed:
        return Silence(Why.EXCLUDED, decision.reason)
    if not (request.invoked or session.configuration_of(uri).enabled):
        return PAUSED
    newest = session.documents.get(uri)
    now = None if newest is None else request.in_version(newest)
    known = CHANGED if now is None else session.desk.fitting(now)
    if now is None or known is not None:
        # No flight, so that nobody is told that we are busy and then that we are not.
        session.flights.supersede(normalised(uri))
        return known or CHANGED
    with session.flights.begin(normalised(uri)) as flight:
        try:
            return await _suggest(session, now)
        except asyncio.CancelledError:
            if flight.superseded:
                return SUPERSEDED
            raise


async def _suggest(session: Session, request: Request) -> Served | Silence:
    """What the engine says, or what was shown where the model would see the same again."""
    desk, configuration = session.desk, session.configuration_of(request.document.uri)
    if request.around is ALONE:  # cells of a notebook read each other
        request = request._replace(context=session.context.at(request.document, request.line))
    loop = asyncio.get_running_loop()
    automatic, invoked = configuration.automatic_deadline_ms, configuration.invoked_deadline_ms
    limit = invoked if request.invoked else automatic
    started = loop.time()
    try:
        completer = await session.completer(configuration, limit)
    except EngineError as error:
        return without_engine(session.status.model, str(error))
    if (served := desk.fitting(request, completer)) is not None:
        return served
    deadline = max(1, limit - round((loop.time() - started) * 1e3))
    completion = await desk.ask(completer, request, deadline)
    if not completion.insert or (not request.invoked and completion.is_mere_draft):
        return of_completion(completion, limit)
    confidence = completion.confidence
    wanted = confidence_wanted(completer.settings.least_confidence, request.view)
    if not request.invoked and 0 < confidence < wanted:  # 0 where the model does not say
        return unsure(confidence, completer.settings.least_confidence, wanted)
    newest = session.documents.get(request.document.uri)
    served = CHANGED if newest is None else desk.offered(request, newest, completion)
    if isinstance(served, Served) and configuration.prefetch:
        desk.prepare(completer, served, request, automatic)
    return served


def _items(session: Session, served: Served) -> Items:
    document = served.document
    place = document.position(served.line, served.column, session.encoding)
    command = accepted.signal(document.uri, document.version, served.offer)
    return Items([Item(text, Range(place, place), command) for text in served.texts])
