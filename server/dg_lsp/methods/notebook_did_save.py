"""notebookDocument/didSave: nothing of ours depends on what is on disk."""

from __future__ import annotations

import msgspec

from dg_lsp.methods.text import DocumentId
from dg_lsp.session import Session


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """DidSaveNotebookDocumentParams."""

    notebook_document: DocumentId


def handle(session: Session, params: Params) -> None:
    """Take note of nothing."""
