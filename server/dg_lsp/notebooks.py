"""Notebooks: cells are documents, and what stands around each is the rest of its notebook."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from dg_lsp.documents import Document
from dg_lsp.languages import comment_mark
from dg_lsp.lines import Lines, body_of
from dg_lsp.uris import normalised

MARKUP = 1
"""The kind of a cell that holds prose (NotebookCellKind)."""
_PROSE = frozenset({"markdown", "plaintext"})
_MAGIC = re.compile(r"%%(\w+)")
_RUNS_AS_IS = frozenset({"capture", "prun", "time", "timeit"})
"""Cell magics whose cell is in the language of the notebook."""

_Chunks = tuple[tuple[str, ...], ...]


class Surroundings(msgspec.Struct, frozen=True):
    """The lines of a text before and after the document that is a part of it."""

    before: _Chunks = ()
    after: _Chunks = ()

    def whole(self, lines: Lines) -> tuple[Lines, int]:
        """The text with these lines of the document in it, and the line at which they begin."""
        if not self.before and not self.after:
            return lines, 0
        own = _ended(lines) if self.after else lines.chunks
        first = sum(map(len, self.before))
        return Lines([*self.before, *own, *self.after]), first


ALONE = Surroundings()
"""Of a document that is a text of its own."""


class Cell(msgspec.Struct, frozen=True):
    """NotebookCell, as far as we need it."""

    document: str
    """URI of its text."""
    kind: int = 2


class Notebook(msgspec.Struct, frozen=True):
    """An open notebook."""

    uri: str
    cells: tuple[Cell, ...]

    def spliced(self, start: int, removed: int, added: Sequence[Cell]) -> Notebook:
        """The notebook with cells in place of `removed` others; what lies outside is clamped."""
        start, removed = max(start, 0), max(removed, 0)
        cells = (*self.cells[:start], *added, *self.cells[start + removed :])
        return msgspec.structs.replace(self, cells=cells)

    def updated(self, data: Sequence[Cell]) -> Notebook:
        """The notebook whose cells are of these kinds."""
        kinds = {normalised(cell.document): cell for cell in data}
        cells = tuple(kinds.get(normalised(cell.document), cell) for cell in self.cells)
        return msgspec.structs.replace(self, cells=cells)


class NotebookStore:
    """The notebooks that the client has open, by normalised URI."""

    def __init__(self, document: Callable[[str], Document | None]) -> None:
        """`document` finds a cell's text by its URI."""
        self._document = document
        self._notebooks: dict[str, Notebook] = {}
        self._of_cells: dict[str, str] = {}
        self._shown_as: dict[str, tuple[Document, int, str, _Chunks]] = {}

    def __len__(self) -> int:
        return len(self._notebooks)

    def get(self, uri: str) -> Notebook | None:
        """A notebook by its URI."""
        return self._notebooks.get(normalised(uri))

    def holding(self, cell: str) -> Notebook | None:
        """The notebook that holds a cell, by the URI of its text."""
        return self._notebooks.get(self._of_cells.get(normalised(cell), ""))

    def put(self, notebook: Notebook) -> None:
        """Open a notebook, or replace it by its next version."""
        self.remove(notebook.uri)
        key = normalised(notebook.uri)
        self._notebooks[key] = notebook
        for cell in notebook.cells:
            self._of_cells[normalised(cell.document)] = key

    def remove(self, uri: str) -> None:
        """Close a notebook; its cells are of none from now on."""
        notebook = self._notebooks.pop(normalised(uri), None)
        for cell in notebook.cells if notebook else ():
            self._of_cells.pop(normalised(cell.document), None)
            self._shown_as.pop(normalised(cell.document), None)

    def beside(self, cell: str) -> list[str]:
        """The other cells of the notebook that holds a cell; none for every other document."""
        notebook, here = self.holding(cell), normalised(cell)
        cells = notebook.cells if notebook else ()
        return [other.document for other in cells if normalised(other.document) != here]

    def around(self, document: Document) -> Surroundings:
        """What stands around a cell; ALONE for every other document."""
        notebook = self.holding(document.uri)
        if notebook is None:
            return ALONE
        here = normalised(document.uri)
        parts: list[list[tuple[str, ...]]] = [[], []]
        behind = 0
        for cell in notebook.cells:
            if normalised(cell.document) == here:
                behind = 1
            elif (text := self._document(cell.document)) is not None:
                parts[behind] += [*self._shown(text, cell.kind, document.language), ("\n",)]
        before, after = parts
        # As a file that ends with a line break.
        return Surroundings(tuple(before), (("\n",), *after[:-1], ("",)) if after else ())

    def _shown(self, text: Document, kind: int, language: str) -> _Chunks:
        """As the function, remembered until the cell changes."""
        key = normalised(text.uri)
        known = self._shown_as.get(key)
        if known is None or known[:3] != (text, kind, language):
            known = self._shown_as[key] = text, kind, language, _shown(text, kind, language)
        return known[3]


def language_of_cell(text: Document) -> str:
    """The language that a cell is written in; a cell magic may hand it to another program."""
    magic = _MAGIC.match(text.lines[0])
    return "plaintext" if magic is not None and magic[1] not in _RUNS_AS_IS else text.language


def _shown(text: Document, kind: int, language: str) -> _Chunks:
    """A cell as one who works in `language` reads it, each line with an ending."""
    chunks = _ended(text.lines)
    if language in _PROSE:
        return chunks
    magic = _MAGIC.match(text.lines[0])
    foreign = kind == MARKUP or text.language != language
    if not foreign and magic is None:
        return chunks
    first, *rest = (line for chunk in chunks for line in chunk)
    mark = comment_mark(language)
    as_is = not foreign and magic is not None and magic[1] in _RUNS_AS_IS
    rest = rest if as_is else [_commented(line, mark) for line in rest]
    return ((_commented(first, mark), *rest),)


def _commented(line: str, mark: str) -> str:
    return f"{mark} {line}" if body_of(line) else f"{mark}{line}"


def _ended(lines: Lines) -> _Chunks:
    """The chunks of lines whose last one gets an ending."""
    *others, last = lines.chunks
    return (*others, (*last[:-1], last[-1] + "\n"))
