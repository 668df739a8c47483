"""Outlines of files and of open documents: made in the background, dropped when they are old."""

from __future__ import annotations

import asyncio
import math
import os
import re
import stat
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from dg_lsp.context.outline import Outline, outline_of
from dg_lsp.documents import Document
from dg_lsp.languages import language_of
from dg_lsp.privacy.gate import Gate
from dg_lsp.prompts.view import unix

MOST_BYTES = 400_000
"""A longer file is hardly written by hand."""
MOST_LINES = 20_000
MOST_BOOKS = 512
_AT_ONCE = 2
"""Files that are read and parsed at the same time."""
LATELY_SECONDS = 2.0
RUN_LINES = 16
"""Lines of the runs that a book is compared by."""
_MOST_RUNS = 250
_WORD = re.compile(r"[A-Za-z_]\w{2,}")

Key = tuple[int, int] | tuple[str, int]
"""Change time and size of a file, or URI and version of a document."""


class Book(msgspec.Struct, frozen=True):
    """A file as context needs it; secrets are masked."""

    outline: Outline
    """Empty for what is no text or too long."""
    lines: tuple[str, ...] = ()
    """Of an open document, without line breaks."""
    runs: tuple[tuple[int, frozenset[str]], ...] = ()
    """Of an open document, first lines of overlapping runs of lines and the words in each."""


class Library:
    """Books by absolute path. Ask again later for one that is not there yet."""

    def __init__(
        self,
        gate: Gate,
        document_at: Callable[[str], Document | None],
        is_gone: Callable[[str], None] = lambda path: None,
    ) -> None:
        """`document_at` is the open document of a path; `is_gone` hears of files without one."""
        self._gate = gate
        self._document_at = document_at
        self._is_gone = is_gone
        self._books: OrderedDict[str, tuple[Key, Book]] = OrderedDict()
        self._made: dict[str, float] = {}
        """When a document that is being typed in was read last."""
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def get(self, path: str, *, newest: bool = False) -> Book | None:
        """The book of a path; None when it may not be read, is not there or is being made.

        While a newer version is being made the older one counts, unless the `newest` is wanted.
        """
        if not self._gate.may_read(path).allowed:
            return None
        document = self._document_at(path)
        key = _key_of(path) if document is None else (document.uri, document.version)
        if key is None:
            self._books.pop(path, None)
            self._is_gone(path)
            return None
        known = self._books.get(path)
        is_new = known is not None and known[0] == key
        if not is_new and path not in self._loading:
            self._begin(path, key, document)
        if known is None or (newest and not is_new):
            return None
        self._books.move_to_end(path)
        return known[1]

    def get_lately(self, path: str) -> Book | None:
        """As `get`, for a document that is being typed in: it is read anew now and then."""
        made = self._made.get(path, -math.inf)
        if time.monotonic() - made < LATELY_SECONDS and self._gate.may_read(path).allowed:
            known = self._books.get(path)
            return None if known is None else known[1]
        self._made[path] = time.monotonic()
        return self.get(path)

    async def settled(self) -> None:
        """Wait for all books that were asked for."""
        while self._loading:
            await asyncio.wait(list(self._loading.values()))

    def close(self) -> None:
        """Make no more books."""
        for task in list(self._loading.values()):
            task.cancel()

    def _begin(self, path: str, key: Key, document: Document | None) -> None:
        task = asyncio.ensure_future(self._load(path, key, document))
        self._loading[path] = task
        task.add_done_callback(lambda _: self._loading.pop(path, None))

    async def _load(self, path: str, key: Key, document: Document | None) -> None:
        async with self._turns:
            if document is None:
                book = await asyncio.to_thread(_read, path, self._gate)
            else:
                book = await asyncio.to_thread(_opened, document, self._gate)
        self._books[path] = key, book
        while len(self._books) > MOST_BOOKS:
            self._books.popitem(last=False)


def _key_of(path: str) -> Key | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    # Reading a pipe would wait for ever.
    return (found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


def _read(path: str, gate: Gate) -> Book:
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        text = ""
    return Book(outline_of(_shown(text, gate), language_of(path)))


def _opened(document: Document, gate: Gate) -> Book:
    is_long = document.lines.count > MOST_LINES
    shown = "" if is_long else _shown(document.lines.text(), gate)
    lines = tuple(shown.split("\n"))
    starts = range(0, len(lines), RUN_LINES // 2)[:_MOST_RUNS]
    runs = tuple((s, words_in("\n".join(lines[s : s + RUN_LINES]))) for s in starts)
    return Book(outline_of(shown, document.language), lines, runs)


def _shown(text: str, gate: Gate) -> str:
    """A text as a model may see it; empty for what is no text or too long."""
    return "" if len(text) > MOST_BYTES or "\0" in text else gate.masked(unix(text))


def words_in(text: str) -> frozenset[str]:
    """The names in a text that are long enough to tell something."""
    return frozenset(_WORD.findall(text))
