"""Which snippets a prompt has room for, and in what order they stand in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dg_lsp.prompts.view import Snippet, SnippetKind

CONTEXT_SHARE = 6
"""One part in so many of a prompt is kept for context where there is some."""


def fitting(
    snippets: Iterable[Snippet], room: int, count: Callable[[str], int]
) -> list[tuple[str, str]]:
    """Paths and texts that take at most `room` tokens, one for each file.

    `snippets` come best first and are whole or left out. The files stand in the order of their
    paths and snippets as they come, so that a change of rank alone changes no prompt.
    """
    texts: dict[str, list[str]] = {}
    left = room
    for snippet in snippets:
        if snippet.kind is SnippetKind.DIAGNOSTIC:
            continue
        # The break behind a text, and the mark behind a file.
        tokens = count(snippet.text + "\n\n") + (0 if snippet.path in texts else 1)
        if tokens <= left:
            texts.setdefault(snippet.path, []).append(snippet.text)
            left -= tokens
    return [(path, "\n\n".join(sorted(held)) + "\n") for path, held in sorted(texts.items())]


def diagnostics(snippets: Iterable[Snippet]) -> list[str]:
    """What is wrong near the cursor, in words."""
    return [snippet.text for snippet in snippets if snippet.kind is SnippetKind.DIAGNOSTIC]
