"""Texts whose cursor is marked by ‸."""

from __future__ import annotations

from dg_lsp.lines import Lines
from dg_lsp.prompts.view import CursorView, Snippet, place_of, view_at


def at_cursor(
    marked: str,
    language: str = "python",
    *,
    path: str = "a.py",
    context: tuple[Snippet, ...] = (),
) -> CursorView:
    """The view of a text at its cursor."""
    text = marked.replace("‸", "")
    line, column = place_of(text, marked.index("‸"))
    return view_at(Lines.of(text), line, column, path=path, language=language, context=context)
