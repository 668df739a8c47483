"""How sure the model must be before its text is shown unasked, by the place of it."""

from __future__ import annotations

from dg_lsp.prompts.view import CursorView
from dg_lsp.scope import is_header
from dg_lsp.syntax.grammars import parser_of
from dg_lsp.syntax.window import window_of

WHOLE_HEAD = 0.8
"""Of the head of a block that is whole without any text: what is added there changes what was
meant, and it is seldom wanted (bench/results/quality_methods.md)."""
_HEADS = ("_statement", "_definition", "_clause")
_ABOVE = ("", "if x: pass\n", "try: pass\n", "match x:\n ")
"""What may have to stand above a head."""


def confidence_wanted(least: float, view: CursorView) -> float:
    """`least`, the setting minConfidence, or more where a place asks for it; 0 asks for nothing."""
    return max(least, WHOLE_HEAD) if least and is_at_whole_head(view) else least


def is_at_whole_head(view: CursorView) -> bool:
    """Whether the cursor stands before the colon of a block's head that needs nothing more.

    `if ready|:` is whole, `if ready and |:` and `for key |:` are not.
    """
    if view.language != "python" or not view.line_after.lstrip().startswith(":"):
        return False
    return _is_whole_line(view.line_before.strip()) or _is_whole_in_tree(view)


def _is_whole_line(head: str) -> bool:
    """Whether it is a head by itself, whatever the block under it is."""
    parser = parser_of("python")
    if parser is None or not is_header(f"{head}:", "python"):
        return False
    return any(
        not parser.parse(f"{above}{head}: pass\n".encode()).root_node.has_error for above in _ABOVE
    )


def _is_whole_in_tree(view: CursorView) -> bool:
    """The same of a head that began on a line above."""
    window = window_of(view)
    if window is None:
        return False
    colon = window.cursor + len(view.line_after) - len(view.line_after.lstrip())
    leaf = window.leaf_at(colon)
    if leaf.type != ":" or leaf.parent is None or not leaf.parent.type.endswith(_HEADS):
        return False
    before = [child for child in leaf.parent.children if child.end_byte <= leaf.start_byte]
    return not any(child.has_error or child.is_missing for child in before)
