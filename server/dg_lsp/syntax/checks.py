"""How much of a proposed text the code around it can take: what parses no worse than before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from tree_sitter import Node

from dg_lsp.shown.pairs import owed_closers
from dg_lsp.syntax.window import UNKNOWN, Window

_GOES_ON = ("(", "[", "{", ",", ":")
_LEADS_ON = ("@", "#[", "#if", "template")
"""Lines that mean nothing without the next one: decorators, annotations, attributes."""
_NEXT: dict[str, tuple[str, ...]] = {
    "python": (),
    "html": (),
    "json": (),
    "ruby": ("\nend", "\nx\nend"),
}
_NEXT_IN_BRACES = (";", "\nx;", " catch (e) {}", " while (x);")
"""What may follow a statement or the head of one."""
_OPEN_TAG = re.compile(r"<([\w.:-]*)(?: [^<>]*)?>$")
_WITH_TAGS = frozenset({"html", "javascript", "javascriptreact", "typescriptreact"})
_MOST_TRIES = 12
"""Parses that one text may cost, about 0.3 ms each."""


def cut_where_parsed(window: Window, text: str) -> str:
    """The longest start of `text`, in whole lines or else expressions, that adds no fault.

    Text that goes on below (`foo(`, `if (a) {`) counts as if what it opens were closed.
    """
    if _fits(window, text):
        return text
    for kept in islice(_shorter(window, text), _MOST_TRIES):
        if kept.endswith(_GOES_ON):
            continue
        faults = window.faults_with(kept)
        if faults <= window.bar:
            return kept
        if faults == UNKNOWN:
            break  # the others would cost as much time
    return ""


def _fits(window: Window, text: str) -> bool:
    if not window.adds_faults(text):
        return True
    if text.rpartition("\n")[2].lstrip().startswith(_LEADS_ON):
        return True
    rests = [rest for rest in _continuations(window, text) if rest]
    return any(not window.adds_faults(text + rest) for rest in rests)


def _continuations(window: Window, text: str) -> list[str]:
    """What may be written next where `text` is the head of something."""
    closers = owed_closers(text) if text.endswith(_GOES_ON) else ""
    tag = _OPEN_TAG.search(text) if window.language in _WITH_TAGS else None
    behind = ("", *_NEXT.get(window.language, _NEXT_IN_BRACES))
    return [f"</{tag[1]}>"] if tag else [closers + rest for rest in behind]


def _shorter(window: Window, text: str) -> Iterator[str]:
    """Starts of `text` that may be whole, the longest first."""
    lines = text.split("\n")
    for count in range(len(lines) - 1, 0, -1):
        kept = "\n".join(lines[:count]).rstrip()
        if kept:
            yield kept
    first = lines[0].encode()
    for end in _ends(window, text, len(first)):
        kept = first[:end].decode(errors="ignore").rstrip()
        if kept:
            yield kept


def _ends(window: Window, text: str, length: int) -> list[int]:
    """Where named nodes end within the first `length` bytes of `text`, the last end first."""
    start = window.cursor
    tree = window.with_text(text)
    found: set[int] = set()
    rest: list[Node] = [] if tree is None else [tree.root_node]
    while rest:
        node = rest.pop()
        if node.end_byte <= start or node.start_byte >= start + length:
            continue
        if node.is_named and not node.is_error and start < node.end_byte < start + length:
            found.add(node.end_byte - start)
        rest.extend(node.children)
    return sorted(found, reverse=True)
