"""textDocument/didChange: the document's next version."""

from __future__ import annotations

import logging

import msgspec

from dg_lsp.documents import ContentChange
from dg_lsp.methods.text import DocumentId
from dg_lsp.session import Session

logger = logging.getLogger(__name__)


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """DidChangeTextDocumentParams."""

    text_document: DocumentId
    content_changes: list[ContentChange]


def handle(session: Session, params: Params) -> None:
    """Apply the changes. Not asynchronous: a request that follows must see them."""
    document = session.documents.get(params.text_document.uri)
    if document is None:
        logger.warning("A document was changed that is not open.")
        return
    opened, version = document, params.text_document.version
    version = document.version + 1 if version is None else version
    for change in params.content_changes:
        before, document = document, document.changed([change], version, session.encoding)
        session.previews.follow(before, change, document)
    document = msgspec.structs.replace(document, version=version)
    session.documents.put(document)
    session.desk.changed(opened, document)
    session.previews.moved(document)
