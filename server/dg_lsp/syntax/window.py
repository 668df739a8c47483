"""The code around a cursor as a syntax tree, parsed anew for every request.

A window has at most BEFORE_CHARS + AFTER_CHARS characters whatever the file's size, so no tree has
to keep up with the document: parsing 5,000 characters takes 0.5 ms, while an incremental parse of
a file of 5,000 lines takes 2 to 5 ms, and 20 where the code is broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from tree_sitter import Node, Parser, Tree

from dg_lsp.prompts.view import CursorView
from dg_lsp.syntax.grammars import parser_of
from dg_lsp.syntax.magics import as_python
from dg_lsp.syntax.parsing import parsed_soon

BEFORE_CHARS = 4_000
AFTER_CHARS = 1_200
MOST_FAULTS = 8
"""With more, a tree is a guess about text that is no code: a window that starts in a string."""
_NEAR_BEFORE, _NEAR_AFTER = 1_500, 600
"""Bytes around the cursor in which faults count."""
_REMEMBERED = 16
_REMEMBERED_TREES = 16
"""Of a language: what was proposed, and what was cut of it. Each is looked at twice, and often it
is proposed again behind the next key, which it said. The oldest go when a window is made, and not
while an answer is looked at: to let many go takes as long as a parse."""
_NAMES = {"json": "1"}
"""The simplest text that is something, where that is not a name."""
UNKNOWN = 1_000_000
"""Faults of a text that takes too long to parse."""

_TOP_LEVEL = re.compile(r"^(?=[^\s)\]}#'\"])", re.MULTILINE)
_LINE_START = re.compile(r"^(?=[ \t]*[^\s)\]}#'\"])", re.MULTILINE)
_NEXT_TOP_LEVEL = re.compile(r"\n(?=[^\s)\]}'\"])")
_TRIPLE = re.compile(r"\"\"\"|'''")


class Window:
    """A syntax tree of the text on both sides of a cursor."""

    def __init__(
        self,
        language: str,
        parser: Parser,
        before: str,
        after: str,
        trees: dict[str, Tree] | None = None,
        *,
        ipython: bool = False,
    ) -> None:
        """Of a cell of `ipython` magics are blanks. `trees` are of whole texts, and windows of a
        language may share them. Raises ValueError when the text takes too long to parse."""
        self.language = language
        self._cell = (before, after) if ipython else None
        if ipython:
            whole, cursor = as_python(before + after), len(before)
            before, after = whole[:cursor], whole[cursor:]
        self.before = before
        self.after = after
        self._parser = parser
        self._head, self._tail = before.encode(), after.encode()
        self.tree = parsed_soon(parser, self._head + self._tail)
        self.faults = self._faults(self.tree, len(self._head))
        """ERROR and MISSING nodes near the cursor in the text as it is."""
        self._bar: int | None = None
        self._trees: dict[str, Tree] = {} if trees is None else trees
        """With the texts that were last proposed."""

    @property
    def cursor(self) -> int:
        """The cursor's offset in bytes."""
        return len(self._head)

    def with_text(self, text: str) -> Tree | None:
        """The tree once `text` stands at the cursor; None when that takes too long to parse."""
        whole = self.before + text + self.after
        is_plain = True
        if self._cell is not None:
            # What stands on the line of a magic is the magic's.
            magic = as_python(self._cell[0] + text + self._cell[1])
            whole, is_plain = magic, magic == whole
        tree = self._trees.get(whole)
        if tree is None:
            tree = self._parsed(whole.encode(), self._edited(text) if is_plain else None)
            if tree is not None:
                self._trees[whole] = tree
        return tree

    def _edited(self, text: str) -> Tree:
        """The tree without `text`, told that it will stand at the cursor."""
        inserted = text.encode()
        start, end = len(self._head), len(self._head) + len(inserted)
        here, there = _point(self._head), _point(self._head + inserted)
        edited = self.tree.copy()
        edited.edit(start, start, end, here, here, there)
        return edited

    def _parsed(self, text: bytes, edited: Tree | None) -> Tree | None:
        try:
            return parsed_soon(self._parser, text, edited)
        except ValueError:
            return None

    def faults_with(self, text: str) -> int:
        """ERROR and MISSING nodes near the cursor once `text` stands there."""
        tree = self.with_text(text)
        if tree is None:
            return UNKNOWN
        return self._faults(tree, len(self._head) + len(text.encode()))

    @property
    def bar(self) -> int:
        """The faults that there are already, and that a mere name would leave."""
        if self._bar is None:
            name = _NAMES.get(self.language, "x")
            self._bar = min(self.faults, self.faults_with(name)) if self.faults else 0
        return self._bar

    def adds_faults(self, text: str) -> bool:
        """Whether `text` makes more faults than these."""
        return self.faults_with(text) > self.bar

    def leaf_at(self, offset: int) -> Node:
        """The token that holds a byte."""
        found = self.tree.root_node.descendant_for_byte_range(offset, offset + 1)
        return found or self.tree.root_node

    def _faults(self, tree: Tree, end: int) -> int:
        """Faults from before the cursor to behind `end`, where the inserted text ends."""
        first, last = len(self._head) - _NEAR_BEFORE, end + _NEAR_AFTER
        # A stray `end` of Ruby is a name to its grammar.
        ends = self.language == "ruby"
        faults, rest = 0, [tree.root_node]
        while rest:
            node = rest.pop()
            if node.end_byte < first or node.start_byte > last:
                continue
            faults += node.is_error or node.is_missing or (ends and _is_stray_end(node))
            if node.has_error or ends:
                children = node.children
                # The line break between `a()b` is missing from a tree that does not show breaks.
                faults += node.has_error and not (
                    node.is_error or any(c.has_error or c.is_missing for c in children)
                )
                rest.extend(children)
        return faults


def window_of(view: CursorView) -> Window | None:
    """The window around a cursor; None where no grammar can tell what is there."""
    before, after = view.before[-BEFORE_CHARS - 1 :], view.after[: AFTER_CHARS + 1]
    return _window(view.language, before, after, ipython=view.in_notebook)


def own_window_of(view: CursorView) -> Window | None:
    """As `window_of`, for another thread: parsers must not be shared."""
    before, after = view.before[-BEFORE_CHARS - 1 :], view.after[: AFTER_CHARS + 1]
    return _made(view.language, before, after, None, ipython=view.in_notebook)


@lru_cache(_REMEMBERED)
def _window(language: str, before: str, after: str, *, ipython: bool) -> Window | None:
    trees = _trees_of(language)
    while len(trees) > _REMEMBERED_TREES:
        del trees[next(iter(trees))]
    return _made(language, before, after, trees, ipython=ipython)


@cache
def _trees_of(language: str) -> dict[str, Tree]:
    """With the texts that were last proposed, the oldest first."""
    return {}


def _made(
    language: str, before: str, after: str, trees: dict[str, Tree] | None, *, ipython: bool
) -> Window | None:
    parser = parser_of(language)
    if parser is None:
        return None
    ipython = ipython and language == "python"
    found: Window | None = None
    for head in _heads_of(before):
        tail = _tail_of(head, after, language)
        try:
            window = Window(language, parser, head, tail, trees, ipython=ipython)
        except ValueError:
            continue
        if window.faults > (MOST_FAULTS if found is None else found.faults):
            continue
        found = window
        if not found.faults:
            break
    return found


def _heads_of(before: str) -> Iterable[str]:
    """Texts before the cursor that begin with a statement, the longer first.

    A line that only looks like the start of a statement may stand in a string, which turns code
    and strings around; then a later start parses better, and faster: a parser takes three times as
    long to mend such a text. So where there are faults, the later start that has no more is taken.
    """
    if len(before) <= BEFORE_CHARS:
        return [before]
    first = before.find("\n") + 1
    if not first:
        return []
    for pattern in (_TOP_LEVEL, _LINE_START):
        starts = [match.start() for match in pattern.finditer(before, first)]
        if starts:
            later = next((s for s in starts if s >= len(before) // 2), starts[-1])
            return [before[start:] for start in dict.fromkeys((starts[0], later))]
    return []


def _tail_of(head: str, after: str, language: str) -> str:
    """The text behind the cursor up to where a statement is likely to end, outside of strings."""
    tail = after
    if len(after) > AFTER_CHARS:
        ends = [match.start() for match in _NEXT_TOP_LEVEL.finditer(after, AFTER_CHARS // 4)]
        tail = after[: (ends[-1] if ends else after.rfind("\n")) + 1]
        if language == "python":
            marks = [match.start() for match in _TRIPLE.finditer(tail)]
            if marks and (len(marks) + len(_TRIPLE.findall(head))) % 2:
                tail = tail[: tail.rfind("\n", 0, marks[-1]) + 1]
    return tail


def _is_stray_end(node: Node) -> bool:
    if node.type != "identifier" or node.text != b"end":
        return False
    return node.parent is None or node.parent.type != "call"  # not `range.end`


def _point(text: bytes) -> tuple[int, int]:
    return text.count(b"\n"), len(text) - (text.rfind(b"\n") + 1)
