"""Keeps what a session knows of its workspace, and chooses the context of a cursor from it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence

from dg_lsp.context.around import NEAR_LINES, Around, around
from dg_lsp.context.choice import Shelves, class_around, definitions, neighbour, snippet_of
from dg_lsp.context.complaints import Complaints
from dg_lsp.context.files import Files
from dg_lsp.context.hunks import Hunks
from dg_lsp.context.library import Book, Library
from dg_lsp.context.walk import SKIPPED, listed_in, walk
from dg_lsp.context.watch import Watch
from dg_lsp.documents import ContentChange, Document, DocumentStore
from dg_lsp.privacy.gate import Gate
from dg_lsp.privacy.ignore_files import NAMES as IGNORE_FILES
from dg_lsp.prompts.view import Snippet, SnippetKind
from dg_lsp.shown.changes import Change, change_between
from dg_lsp.syntax.grammars import LANGUAGES
from dg_lsp.uris import normalised, path_of, shown_path

MOST_NEIGHBOURS = 4
"""Open files that are compared with the lines around a cursor."""
MOST_EDITS = 2
_EDIT_MARGIN = 2
_MOST_EDIT_LINES = 24


_Alike = tuple[tuple[int, tuple[int, ...]], list[tuple[str, Book]], list[Snippet]]
"""Where and among which books a neighbour was chosen, those books, and the choice."""


class Keeper:
    """The files of the workspace, what was opened and edited, and the last choices."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self._roots: list[str] = []
        self._gate = Gate()
        self._files = Files()
        self._opened: dict[str, str] = {}
        """Paths of open documents and their URIs, the last used at the end."""
        self._library = self._new_library()
        self._hunks = Hunks()
        self._complaints = Complaints()
        self._alike: dict[str, _Alike] = {}
        self._watch: Watch | None = None
        self._walking: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self._started = self._watching = False

    def configure(self, roots: Sequence[str], gate: Gate) -> None:
        """These folders are the workspace, and this is what may be read of them."""
        self._roots, self._gate = list(roots), gate
        self._library.close()
        self._library = self._new_library()
        self._alike.clear()
        if self._started:
            self._restart()

    def start(self, *, watching: bool = True) -> None:
        """Look for the files of the workspace, in the background, and for what becomes of them."""
        self._started, self._watching = True, watching
        self._restart()

    def close(self) -> None:
        """End all work in the background."""
        self._started = False
        self._library.close()
        if self._watch is not None:
            self._watch.close()
        for task in (self._walking, *self._later):
            if task is not None:
                task.cancel()

    async def settled(self) -> None:
        """Wait until the files are found and everything asked for is read."""
        while waiting := [t for t in (self._walking, *self._later) if t and not t.done()]:
            await asyncio.wait(waiting)
        await self._library.settled()

    def opened(self, document: Document) -> None:
        """A document was opened: what it imports is likely to be needed."""
        self._used(document.uri)
        if document.language in LANGUAGES:
            self._definitions(around(document.lines, 0, document.language), document)

    def changed(self, before: Document, change: ContentChange, after: Document) -> None:
        """A document was edited."""
        self._used(after.uri)
        lines = _lines_of(before, change, after)
        if lines is not None:
            self._hunks.edited(after.uri, lines)

    def closed(self, uri: str) -> None:
        """A document was closed; its file may still be read."""
        self._opened.pop(path_of(uri), None)
        self._hunks.closed(uri)
        self._complaints.closed(uri)
        self._alike.pop(path_of(uri), None)

    def diagnosed(self, document: Document, messages: Sequence[tuple[int, str]]) -> None:
        """The editor passed on what is wrong with lines of a document."""
        self._complaints.told(document, messages)

    def at(self, document: Document, line: int) -> tuple[Snippet, ...]:
        """The context of a line, the best first; the same until something else is used there.

        Takes about a millisecond; what is not read yet is left out and read in the background.
        """
        if document.language not in LANGUAGES:
            return ()
        near = around(document.lines, line, document.language)
        found = [
            *self._wrong(document, line),
            *self._definitions(near, document),
            *self._class(near, document),
            *self._edited(document, line),
            *self._neighbour(near, document, line),
        ]
        return tuple(dict.fromkeys(found))

    def _definitions(self, near: Around, document: Document) -> list[Snippet]:
        path = path_of(document.uri)
        folder = os.path.dirname(path)
        shelves = Shelves(
            find=lambda candidate: self._files.find(candidate, path),
            siblings=lambda: self._files.in_folder(folder),
            get=self._library.get,
            shown=self._shown,
        )
        return definitions(near, document.language, path, shelves)

    def _wrong(self, document: Document, line: int) -> list[Snippet]:
        path = self._shown(path_of(document.uri))
        return [
            Snippet(path, self._gate.masked(message), SnippetKind.DIAGNOSTIC)
            for message in self._complaints.near(document, line)
        ]

    def _class(self, near: Around, document: Document) -> list[Snippet]:
        if not near.class_name:
            return []
        path = path_of(document.uri)
        return class_around(near, self._library.get_lately(path), self._shown(path))

    def _edited(self, document: Document, line: int) -> list[Snippet]:
        """What was edited last, but for what is near the cursor itself."""
        uri = normalised(document.uri)
        found: list[Snippet] = []
        for hunk in self._hunks.newest:
            other = self._documents.get(hunk.uri)
            first, last = hunk.first - _EDIT_MARGIN, hunk.last + _EDIT_MARGIN + 1
            own = hunk.uri == uri
            if other is None or (own and first - NEAR_LINES <= line <= last + NEAR_LINES):
                continue
            # Of the file at the cursor a version of a moment ago will do.
            path = path_of(other.uri)
            book = self._library.get_lately(path) if own else self._library.get(path, newest=True)
            if book is not None and len(found) < MOST_EDITS:
                lines = book.lines[max(first, 0) : min(last, first + _MOST_EDIT_LINES)]
                found.append(snippet_of(self._shown(path), lines, SnippetKind.EDIT))
        return found

    def _neighbour(self, near: Around, document: Document, line: int) -> list[Snippet]:
        """Compared again only elsewhere, so that typing leaves the choice as it is."""
        own = path_of(document.uri)
        others = [path for path in reversed(self._opened) if path != own][:MOST_NEIGHBOURS]
        books = [(path, book) for path in others if (book := self._library.get(path))]
        key = (line // NEAR_LINES, tuple(id(book) for _, book in books))
        known = self._alike.get(own)
        if known is None or known[0] != key:
            shown = [(self._shown(path), book) for path, book in books]
            # The books are kept with the choice, so that nothing else gets their identity.
            self._alike[own] = known = key, books, neighbour(near, shown)
        return known[2]

    def _shown(self, path: str) -> str:
        return shown_path(path, [path_of(root) for root in self._roots])

    def _used(self, uri: str) -> None:
        """A document was opened or edited."""
        path = path_of(uri)
        self._opened.pop(path, None)
        self._opened[path] = uri

    def _document_at(self, path: str) -> Document | None:
        uri = self._opened.get(path)
        return None if uri is None else self._documents.get(uri)

    def _new_library(self) -> Library:
        return Library(self._gate, self._document_at, lambda path: self._files.remove(path))

    def _restart(self) -> None:
        """Look for the files anew."""
        if self._watch is not None:
            self._watch.close()
        if self._walking is not None:
            self._walking.cancel()
        self._files, self._watch = Files(), Watch(self._told, self._begun)
        roots = [path_of(root).rstrip("/") for root in self._roots]
        self._walking = asyncio.ensure_future(
            self._walk([root for root in roots if is_project(root)])
        )

    async def _walk(self, roots: Sequence[str]) -> None:
        files, watch = self._files, self._watch
        known = set(files.folders)
        await walk(files, roots, self._gate.may_enter)
        if watch is not None and self._watching:
            watch.add([folder for folder in files.folders if folder not in known])

    def _told(self, paths: Sequence[str]) -> None:
        """Something came, went or changed on the disk."""
        if any(os.path.basename(path) in IGNORE_FILES for path in paths):
            self._restart()
            return
        for path in paths:
            if os.path.isdir(path) and not os.path.islink(path):
                if self._is_new(path):
                    self._do_later(self._walk([path]))
            elif os.path.lexists(path):
                self._files.add_folder(os.path.dirname(path), [os.path.basename(path)])
            else:
                self._files.remove(path)

    def _begun(self, folders: Sequence[str]) -> None:
        """Folders are watched from now on: look for what came after they were listed."""
        self._do_later(self._relist(folders))

    async def _relist(self, folders: Sequence[str]) -> None:
        for listed in await asyncio.to_thread(listed_in, folders):
            self._files.add_folder(listed.folder, listed.names)
            paths = [f"{listed.folder}/{name}" for name in listed.folders]
            if new := [path for path in paths if self._is_new(path)]:
                await self._walk(new)

    def _is_new(self, folder: str) -> bool:
        """Whether a folder was not looked into and may be."""
        skipped = os.path.basename(folder) in SKIPPED or self._files.knows(folder)
        return not skipped and self._gate.may_enter(folder)

    def _do_later(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)


def is_project(root: str) -> bool:
    """Whether to look for files below a folder: it is there, and not a whole disk or home."""
    return os.path.isdir(root) and root not in ("", os.path.expanduser("~"))


def _lines_of(before: Document, change: ContentChange, after: Document) -> Change | None:
    """The lines that a change touched."""
    if change.range is None:
        return change_between(before.lines, after.lines)
    given = (change.range.start.line, change.range.end.line)
    first, last = sorted(min(max(line, 0), before.lines.count - 1) for line in given)
    grown = after.lines.count - before.lines.count
    return Change(first, last + 1, last + 1 + grown)
