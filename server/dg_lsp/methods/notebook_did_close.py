"""notebookDocument/didClose: forget the notebook and the texts of its cells."""

from __future__ import annotations

import msgspec

from dg_lsp.methods.did_close import closed
from dg_lsp.methods.text import DocumentId
from dg_lsp.session import Session


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """DidCloseNotebookDocumentParams."""

    notebook_document: DocumentId
    cell_text_documents: list[DocumentId] = []


def handle(session: Session, params: Params) -> None:
    """Forget it; answers still in flight for its cells come back empty, edits end."""
    session.notebooks.remove(params.notebook_document.uri)
    for document in params.cell_text_documents:
        closed(session, document.uri)
