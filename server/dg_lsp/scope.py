"""What the lines around a cursor say: is a block about to be written here?"""

from __future__ import annotations

from dg_lsp.prompts.view import CursorView

_BLOCK_OPENERS = (":", "{")


def opens_block(view: CursorView) -> bool:
    """Whether the cursor stands on a blank line right inside a block that has no body yet."""
    if view.line_before.strip() or view.line_after.strip():
        return False
    head = [line for line in view.before.split("\n")[:-1] if line.strip()]
    if not head or not head[-1].rstrip().endswith(_BLOCK_OPENERS):
        return False
    following = next((line for line in view.after.split("\n")[1:] if line.strip()), "")
    return indent_of(following) <= indent_of(head[-1])


def indent_of(line: str) -> int:
    """Columns of white space that a line starts with, a tab counting to the next multiple of 8."""
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())
