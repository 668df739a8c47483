"""notebookDocument/didChange: cells that came, went, moved, or whose text changed."""

from __future__ import annotations

import logging

import msgspec

from dg_lsp.documents import ContentChange
from dg_lsp.methods.did_change import changed
from dg_lsp.methods.did_close import closed
from dg_lsp.methods.did_open import OpenedDocument, opened
from dg_lsp.methods.text import DocumentId
from dg_lsp.notebooks import Cell
from dg_lsp.session import Session

logger = logging.getLogger(__name__)


class CellArray(msgspec.Struct, frozen=True, rename="camel"):
    """NotebookCellArrayChange."""

    start: int
    delete_count: int
    cells: list[Cell] | None = None


class Structure(msgspec.Struct, frozen=True, rename="camel"):
    """How the list of cells changed."""

    array: CellArray
    did_open: list[OpenedDocument] | None = None
    did_close: list[DocumentId] | None = None


class CellText(msgspec.Struct, frozen=True):
    """How one cell's text changed."""

    document: DocumentId
    changes: list[ContentChange]


class Cells(msgspec.Struct, frozen=True, rename="camel"):
    """NotebookDocumentCellChanges."""

    structure: Structure | None = None
    data: list[Cell] | None = None
    text_content: list[CellText] | None = None


class Change(msgspec.Struct, frozen=True):
    """NotebookDocumentChangeEvent."""

    cells: Cells | None = None


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """DidChangeNotebookDocumentParams."""

    notebook_document: DocumentId
    change: Change


def handle(session: Session, params: Params) -> None:
    """Apply it. Not asynchronous: a request that follows must see it."""
    notebook = session.notebooks.get(params.notebook_document.uri)
    if notebook is None:
        logger.warning("A notebook was changed that is not open.")
        return
    cells = params.change.cells or Cells()
    if cells.structure is not None:
        array = cells.structure.array
        for document in cells.structure.did_open or []:
            opened(session, document)
        notebook = notebook.spliced(array.start, array.delete_count, array.cells or [])
        for gone in cells.structure.did_close or []:
            closed(session, gone.uri)
    if cells.data is not None:
        notebook = notebook.updated(cells.data)
    session.notebooks.put(notebook)
    session.desk.surroundings_changed([cell.document for cell in notebook.cells])
    for text in cells.text_content or []:
        changed(session, text.document, text.changes)
