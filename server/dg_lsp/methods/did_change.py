"""textDocument/didChange: the document's next version."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from dg_lsp.ahead import NEW_LINES
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
    changed(session, params.text_document, params.content_changes)


def changed(session: Session, which: DocumentId, changes: Sequence[ContentChange]) -> None:
    """Change a text, and what stands around the other cells where it is a notebook's."""
    document = session.documents.get(which.uri)
    if document is None:
        logger.warning("A document was changed that is not open.")
        return
    session.idle.hold()
    is_cell = session.notebooks.holding(document.uri) is not None
    follows = session.configuration_of(document.uri).next_edit
    opened, version = document, which.version
    version = document.version + 1 if version is None else version
    for change in changes:
        if change.text.count("\n") >= NEW_LINES:
            session.look_ahead(document.uri, change.range.start.line if change.range else 0)
        before, document = document, document.changed([change], version, session.encoding)
        session.previews.follow(before, change, document)
        if not is_cell:  # cells read each other as they are
            session.context.changed(before, change, document)
            if follows:
                session.next_edits.changed(before, document)
    if document.version != version:  # without a change
        document = msgspec.structs.replace(document, version=version)
    session.documents.put(document)
    session.desk.changed(opened, document)
    session.previews.moved(document)
    session.desk.surroundings_changed(session.notebooks.beside(document.uri))
