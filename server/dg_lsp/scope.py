"""What the code around a cursor says: is a block about to be written here, and inside of what?"""

from __future__ import annotations

import re

from tree_sitter import Node

from dg_lsp.prompts.view import CursorView
from dg_lsp.syntax.window import window_of

_OPENERS = (":", "{")
_RUBY_OPENER = re.compile(
    r"\s*(?:def|class|module|if|unless|while|until|for|case|begin|else|elsif|when|rescue|ensure)\b"
    r"(?!.*\bend$)|.*\bdo(?:\s*\|[^|]*\|)?$"
)
_PYTHON_HEADER = re.compile(
    r"\s*(?:async|case|class|def|elif|else|except|finally|for|if|match|try|while|with)\b|\s*\)"
)
_LITERAL_OPENS = re.compile(r"(?:[=(\[,:]|\breturn)\s*\{$")
_LEAVING = frozenset(
    {"return_statement", "raise_statement", "break_statement", "continue_statement"}
)
_TEXT = ("string", "comment", "heredoc", "char_literal")
"""Parts of the names of nodes whose text is no code."""
_VALUES = frozenset(
    {
        "array_initializer",
        "dictionary",
        "export_clause",
        "field_initializer_list",
        "hash",
        "initializer_list",
        "jsx_expression",
        "lambda",
        "literal_value",
        "named_imports",
        "object",
        "object_pattern",
        "pair",
        "set",
        "slice",
        "struct_expression",
        "use_list",
    }
)
"""Nodes in which a colon or a brace opens no block."""


def opens_block(view: CursorView) -> bool:
    """Whether the cursor stands on a blank line right inside a block that has no body yet."""
    if view.line_before.strip() or view.line_after.strip():
        return False
    above = view.before[: view.before.rfind("\n") + 1].rstrip()
    head = above[above.rfind("\n") + 1 :]
    if not _is_opener(head, view.language):
        return False
    following = next((line for line in view.after.split("\n")[1:] if line.strip()), "")
    if indent_of(following) > indent_of(head):
        return False
    return _opens_in_tree(view, head, len(view.before) - len(above))


def is_inside_its_block(view: CursorView) -> bool:
    """Whether the cursor's blank line is indented more than the line above that opens its block."""
    head = view.before[: view.before.rfind("\n") + 1].rstrip().rpartition("\n")[2]
    return opens_block(view) and indent_of(view.line_before) > indent_of(head)


def is_behind_the_end(view: CursorView) -> bool:
    """Whether the cursor is on a blank line in a block of Python that was left just above.

    Nothing that stands behind `return x` at its own indentation is ever run.
    """
    if view.language != "python" or view.line_before.strip() or view.line_after.strip():
        return False
    window = window_of(view)
    above = "" if window is None else window.before.rstrip()
    if window is None or not above:
        return False
    node: Node | None = window.leaf_at(len(above.encode()) - 1)
    while node is not None and node.type not in _LEAVING:
        node = node.parent
    return node is not None and node.start_point.column == len(view.line_before)


def is_header(line: str, language: str) -> bool:
    """Whether a line of Python is the head of a block."""
    return language == "python" and line.endswith(":") and _PYTHON_HEADER.match(line) is not None


def enclosing_indents(view: CursorView) -> list[int]:
    """The columns of the cursor's blank line and of the lines above that each stand out further."""
    found = [indent_of(view.line_before)]
    for line in reversed(view.before.split("\n")[:-1]):
        if line.strip() and indent_of(line) < found[-1]:
            found.append(indent_of(line))
        if not found[-1]:
            break
    return found


def indent_of(line: str) -> int:
    """Columns of white space that a line starts with, a tab counting to the next multiple of 8."""
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _is_opener(head: str, language: str) -> bool:
    if language == "ruby":
        return _RUBY_OPENER.match(head) is not None
    return head.endswith(_OPENERS)


def _opens_in_tree(view: CursorView, head: str, behind: int) -> bool:
    """Whether the syntax agrees: the last character of `head` is code, and no value's.

    `behind` characters stand between it and the cursor.
    """
    window = window_of(view)
    if window is None or len(window.before) <= behind:
        return True
    leaf = window.leaf_at(len(window.before[: len(window.before) - behind].encode()) - 1)
    if _is_text(leaf):
        return False
    if view.language == "python" and _PYTHON_HEADER.match(head):
        return True
    parent = leaf.parent
    if parent is not None and not parent.is_error:
        return parent.type not in _VALUES
    return view.language != "python" and _LITERAL_OPENS.search(head) is None


def is_in_text(view: CursorView) -> bool:
    """Whether the cursor is inside of a string or a comment that began before it."""
    window = window_of(view)
    if window is None:
        return False
    leaf = window.leaf_at(window.cursor)
    return leaf.start_byte < window.cursor and _is_text(leaf)


def _is_text(leaf: Node) -> bool:
    node: Node | None = leaf
    for _ in range(2):
        if node is not None:
            if any(part in node.type for part in _TEXT):
                return True
            node = node.parent
    return False
