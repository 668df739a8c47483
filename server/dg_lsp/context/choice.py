"""Which snippets a cursor gets: definitions first, then the class, edits and neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dg_lsp.context.around import Around
from dg_lsp.context.imports import ANY, MODULE, Import
from dg_lsp.context.library import RUN_LINES, Book
from dg_lsp.context.modules import candidates
from dg_lsp.context.outline import Definition
from dg_lsp.prompts.view import Snippet, SnippetKind

MOST_FILES = 24
"""Files that are looked into for one cursor."""
MOST_DEFINITIONS = 16
_LEAST_ALIKE = 0.2
"""Of the words of two runs of lines, the share that both must have."""


class Shelves:
    """How a choice looks things up."""

    def __init__(
        self,
        find: Callable[[str], list[str]],
        siblings: Callable[[], list[str]],
        get: Callable[[str], Book | None],
        shown: Callable[[str], str],
    ) -> None:
        """
        Args:
            find: the paths of a candidate of `modules`.
            siblings: the paths in the folder of the file at the cursor.
            get: the book of a path, where there is one.
            shown: a path as people know it.
        """
        self.find = find
        self.siblings = siblings
        self.get = get
        self.shown = shown


def definitions(near: Around, language: str, path: str, shelves: Shelves) -> list[Snippet]:
    """The definitions of imported names that are used near a cursor in the file at `path`."""
    found: dict[tuple[str, int], Snippet] = {}
    looked = 0
    wanted_first = sorted(_wanted(near, language), key=lambda w: not _is_close(w, near))
    for wanted in wanted_first:
        for place in _places(wanted, language, path, shelves):
            if looked >= MOST_FILES or len(found) >= MOST_DEFINITIONS:
                return list(found.values())
            looked += 1
            book = None if place == path else shelves.get(place)
            for definition in _used(wanted, near, book) if book else ():
                snippet = Snippet(shelves.shown(place), definition.text, SnippetKind.DEFINITION)
                found.setdefault((place, definition.first), snippet)
    return list(found.values())


def class_around(near: Around, book: Book | None, path: str) -> list[Snippet]:
    """The class around a cursor, when its head is out of sight."""
    found = book.outline.named(near.class_name) if book and near.class_name else None
    return [Snippet(path, found.text, SnippetKind.CLASS)] if found else []


def neighbour(near: Around, books: Iterable[tuple[str, Book]]) -> list[Snippet]:
    """The lines of a book that are most like those around a cursor."""
    best: tuple[float, str, Book, int] | None = None
    for path, book in books:
        for first, words in book.runs:
            union = len(near.words | words)
            alike = len(near.words & words) / union if union else 0.0
            if alike >= _LEAST_ALIKE and (best is None or alike > best[0]):
                best = alike, path, book, first
    if best is None:
        return []
    _, path, book, first = best
    return [snippet_of(path, book.lines[first : first + RUN_LINES], SnippetKind.NEIGHBOUR)]


def snippet_of(path: str, lines: Sequence[str], kind: SnippetKind) -> Snippet:
    """Lines as a snippet."""
    return Snippet(path, "\n".join(lines).strip("\n"), kind)


def _wanted(near: Around, language: str) -> Iterator[Import]:
    """The imports of which something is used, and the package that needs no import."""
    modules = {module for module, _ in near.dotted}
    for found in near.imports:
        names = tuple(
            (bound, name)
            for bound, name in found.names
            if name == ANY or bound in near.words or (name == MODULE and bound in modules)
        )
        if names:
            yield Import(found.module, names)
    if language in ("go", "java"):
        yield Import("", (("", ANY),))


def _is_close(wanted: Import, near: Around) -> bool:
    """Whether one of the names is used on the lines next to the cursor."""
    return any(bound in near.close for bound, _ in wanted.names)


def _places(wanted: Import, language: str, path: str, shelves: Shelves) -> list[str]:
    if not wanted.module:
        return shelves.siblings()
    for candidate in candidates(wanted.module, language, path):
        if found := shelves.find(candidate):
            return found
    return []


def _used(wanted: Import, near: Around, book: Book) -> Iterator[Definition]:
    """The definitions of a book that are meant by names near the cursor."""
    for bound, name in wanted.names:
        if name == ANY:
            yield from (d for d in book.outline.definitions if not d.owner and d.name in near.words)
        elif name == MODULE:
            used = {behind for module, behind in near.dotted if module == bound}
            yield from (d for d in book.outline.definitions if not d.owner and d.name in used)
        elif found := book.outline.named(name):
            yield found
