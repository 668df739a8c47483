"""notebookDocument/didOpen: a notebook and the texts of its cells."""

from __future__ import annotations

import msgspec

from dg_lsp.methods.did_open import OpenedDocument, opened
from dg_lsp.notebooks import Cell, Notebook
from dg_lsp.session import Session


class OpenedNotebook(msgspec.Struct, frozen=True):
    """NotebookDocument."""

    uri: str
    cells: list[Cell] = []


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """DidOpenNotebookDocumentParams."""

    notebook_document: OpenedNotebook
    cell_text_documents: list[OpenedDocument] = []


def handle(session: Session, params: Params) -> None:
    """Take it in. Not asynchronous: a request that follows must see it."""
    notebook = params.notebook_document
    for document in params.cell_text_documents:
        opened(session, document)
    session.notebooks.put(Notebook(notebook.uri, tuple(notebook.cells)))
