"""textDocument/didClose: forget the document."""

from __future__ import annotations

import msgspec

from dg_lsp.methods.text import DocumentId
from dg_lsp.previews import CLOSED
from dg_lsp.session import Session
from dg_lsp.uris import normalised


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """DidCloseTextDocumentParams."""

    text_document: DocumentId


def handle(session: Session, params: Params) -> None:
    """Forget the document; answers still in flight for it come back empty, edits end."""
    closed(session, params.text_document.uri)


def closed(session: Session, uri: str) -> None:
    """Forget a text."""
    session.documents.remove(uri)
    session.idle.drop(normalised(uri))
    session.desk.closed(uri)
    session.next_edits.closed(uri)
    session.context.closed(uri)
    session.previews.close(uri)
    session.flights.end_document(normalised(uri), CLOSED)
