"""textDocument/didOpen: from now on the client's text is the truth."""

from __future__ import annotations

import msgspec

from dg_lsp.documents import Document
from dg_lsp.session import Session


class OpenedDocument(msgspec.Struct, frozen=True, rename="camel"):
    """TextDocumentItem of the specification."""

    uri: str
    text: str
    language_id: str = "plaintext"
    version: int = 0


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """DidOpenTextDocumentParams."""

    text_document: OpenedDocument


def handle(session: Session, params: Params) -> None:
    """Take the document in. Not asynchronous: a request that follows must see it."""
    document = opened(session, params.text_document)
    session.context.opened(document)
    session.look_ahead(document.uri)


def opened(session: Session, item: OpenedDocument) -> Document:
    """Take a text in."""
    session.desk.closed(item.uri)
    session.next_edits.closed(item.uri)
    session.previews.close(item.uri)  # of a document that was open already
    document = Document.of(item.uri, item.version, item.language_id, item.text)
    session.documents.put(document)
    return document
