"""textDocument/copilotInlineEdit: the next edit elsewhere in the file, as Copilot's clients ask.

sidekick.nvim sends `textDocument`, `position` and `context`, and keeps edits whose version is the
buffer's; copilot-lsp sends no `context`. Both read `edits`, draw what they find there, and run an
edit's `command` once it is applied. sidekick.nvim applies all of them at once, so there is at most
one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

import msgspec
from dg_engine.engine import EngineError
from lsprotocol import types

from dg_lsp.commands import next_edit_accepted
from dg_lsp.completion import Completer
from dg_lsp.documents import Document
from dg_lsp.methods.diagnostics import Diagnostic, placed
from dg_lsp.methods.text import DocumentId
from dg_lsp.next_edit.desk import ENDED, Request
from dg_lsp.next_edit.diagnostics import MOST_TOLD
from dg_lsp.next_edit.proposal import Proposal
from dg_lsp.positions import Position
from dg_lsp.session import Session
from dg_lsp.silences import CHANGED, NOT_OPEN, OLDER, without_engine
from dg_lsp.uris import normalised

logger = logging.getLogger(__name__)

NAME = "textDocument/copilotInlineEdit"
IN_NOTEBOOK = "Next edits are not proposed in notebooks."
TOO_SLOW = "The model had no answer in time."


class Context(msgspec.Struct, frozen=True):
    """What a client may add, beside what nothing here depends on."""

    diagnostics: list[Diagnostic] | None = None
    """All of the document, as it stands, by whatever server; None: the client does not say."""


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """What clients send; the position is the cursor's, which the edits before tell more than."""

    text_document: DocumentId
    position: Position | None = None
    context: Context | None = None


class Asked(NamedTuple):
    """A document, and its version as it was asked about, or why nothing is proposed."""

    uri: str
    request: Request | str


def on_receipt(session: Session, params: Params) -> Asked:
    """What is asked about; what is typed from now on comes behind it."""
    uri = params.text_document.uri
    return Asked(uri, _request(session, uri, params))


def _request(session: Session, uri: str, params: Params) -> Request | str:
    stated = params.text_document.version
    document = session.documents.get(uri)
    if document is None:
        return NOT_OPEN.message
    if stated is not None and stated != document.version:
        return OLDER.message
    if session.notebooks.holding(uri) is not None:
        return IN_NOTEBOOK
    decision = session.may_complete(uri)
    if not decision.allowed:
        return decision.reason
    if params.context is not None and params.context.diagnostics is not None:
        given = params.context.diagnostics
        told = placed(document, given, session.encoding)
        session.next_edits.diagnosed(document, told, whole=len(given) <= MOST_TOLD)
    return session.next_edits.request(document, session.shown_path(uri))


async def handle(session: Session, asked: Asked) -> dict[str, Any]:
    """At most one edit of the version that was asked about; none where the setting is off."""
    if not session.configuration_of(asked.uri).next_edit:
        return {"edits": []}  # clients that ask anyway look into it
    request = asked.request
    found = request if isinstance(request, str) else await _found(session, request)
    if isinstance(request, str) or isinstance(found, str):
        logger.info("No next edit: %s", found)
        return {"edits": []}
    return {"edits": [_edit(session, request.document, found)]}


async def _found(session: Session, asked: Request) -> Proposal | str:
    uri = normalised(asked.document.uri)
    with session.flights.begin(f"{NAME} {uri}", document=uri) as flight:
        session.next_edits.follow(uri, flight)
        try:
            found = await _proposed(session, asked)
        except asyncio.CancelledError:
            if flight.superseded or flight.ended_because:
                return flight.ended_because or ENDED
            raise
        finally:
            session.next_edits.unfollow(uri, flight)
    newest = session.documents.get(uri)
    return found if newest is asked.document else CHANGED.message


async def _proposed(session: Session, asked: Request) -> Proposal | str:
    configuration = session.configuration_of(asked.document.uri)
    limit = configuration.automatic_deadline_ms

    async def completer() -> Completer:
        return await session.completer(configuration, limit)

    try:
        return await session.next_edits.propose(asked, completer, limit)
    except EngineError as error:
        return without_engine(session.status.model, str(error)).message
    except TimeoutError:
        return TOO_SLOW


def _edit(session: Session, document: Document, proposal: Proposal) -> dict[str, Any]:
    """An edit as clients read it, numbered so that they can say what became of it."""
    number = session.next_edits.offer(document, proposal)
    places = (
        document.position(proposal.line, column, session.encoding)
        for column in (proposal.start, proposal.end)
    )
    start, end = (types.Position(line=p.line, character=p.character) for p in places)
    command = next_edit_accepted.signal(document.uri, document.version, number)
    return {
        "text": proposal.text,
        "range": types.Range(start=start, end=end),
        "textDocument": {"uri": document.uri, "version": document.version},
        "command": command,
    }
