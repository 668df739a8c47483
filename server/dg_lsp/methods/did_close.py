"""textDocument/didClose: forget the document."""

from __future__ import annotations

import msgspec

from dg_lsp.methods.text import DocumentId
from dg_lsp.session import Session


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """DidCloseTextDocumentParams."""

    text_document: DocumentId


def handle(session: Session, params: Params) -> None:
    """Forget the document; answers still in flight for it come back empty."""
    session.documents.remove(params.text_document.uri)
