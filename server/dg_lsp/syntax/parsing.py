"""Parsing that can be stopped, without what tree-sitter's Python package leaves behind.

Stopping takes a callback that hands the text over, and the package (0.25 and 0.26) keeps a
reference to all that such a callback returned, for ever: a window's text for every parse. The
references are given back here, as long as the package is seen to keep them.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from functools import cache

from tree_sitter import Language, Parser, Tree

PARSE_SECONDS = 0.002
"""What a parse may take that somebody waits for; recovery from what is no code takes long."""
_MORE_SECONDS = 0.004
"""Processor time that it may take behind that: on a busy machine a parse of proper code takes
several times as much of it as on a quiet one, and a right answer must not be given up there."""
CHUNK_BYTES = 4_096
"""What is handed over at once; between two of them the interpreter may switch threads."""


def parsed(
    parser: Parser,
    text: bytes,
    old: Tree | None = None,
    is_late: Callable[[int, bool], bool] = lambda offset, has_error: False,
) -> Tree:
    """The tree of a text, from an edited one where there is one.

    `is_late` is asked now and then; when it says so, ValueError is raised, and the parser must be
    reset.
    """
    handed: list[bytes] = []

    def read(offset: int, point: object) -> bytes:
        handed.append(text[offset : offset + CHUNK_BYTES])
        return handed[-1]

    try:
        if old is None:
            return parser.parse(read, progress_callback=is_late)
        return parser.parse(read, old, progress_callback=is_late)
    finally:
        if keeps_what_it_reads(parser.language):
            for piece in handed:
                ctypes.pythonapi.Py_DecRef(ctypes.py_object(piece))
        handed.clear()  # the tree keeps the callback


def parsed_soon(parser: Parser, text: bytes, old: Tree | None = None) -> Tree:
    """As `parsed`, in PARSE_SECONDS; raises ValueError when that is not enough."""
    late = time.perf_counter() + PARSE_SECONDS
    end: float | None = None

    def is_late(offset: int, has_error: bool) -> bool:
        # A machine that is busy elsewhere is no reason to give up, so processor time decides; to
        # ask for it is slow on some systems.
        nonlocal end
        if time.perf_counter() < late:
            return False
        if end is None:
            end = time.thread_time() + _MORE_SECONDS
        return time.thread_time() > end

    try:
        return parsed(parser, text, old, is_late)
    except ValueError:
        parser.reset()  # or it would go on with this text
        raise


@cache
def keeps_what_it_reads(language: Language | None) -> bool:
    """Whether this version of the package keeps what callbacks return, with no tree left."""
    parser = Parser() if language is None else Parser(language)
    probe = bytes(bytearray(b"x " * 32))  # an object of its own
    before = sys.getrefcount(probe)
    parser.parse(lambda offset, point: probe[offset:])
    return sys.getrefcount(probe) > before
