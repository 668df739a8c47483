"""Which snippets a prompt has room for, and in what order they stand in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dg_lsp.prompts.view import Snippet, SnippetKind

CONTEXT_SHARE = 6
"""One part in so many of a prompt is kept for context where there is some."""

LEAST_LINES = 3
"""Of a text that does not fit: fewer say nothing."""
_BREAK_TOKENS = 2
"""What stands behind a text."""


def fitting(
    snippets: Iterable[Snippet], room: int, count: Callable[[str], int]
) -> list[tuple[str, str]]:
    """Paths and texts that take at most `room` tokens, one for each file.

    `snippets` come best first; one that is too long is cut at a line. Files and the snippets of
    each stand in an order of their own, so that a change of rank alone changes no prompt.
    """
    texts: dict[str, list[str]] = {}
    left = room
    for snippet in snippets:
        if snippet.kind is SnippetKind.DIAGNOSTIC:
            continue
        mark = 0 if snippet.path in texts else 1
        text, tokens = _start_of(snippet.text, left - mark, count)
        if text:
            texts.setdefault(snippet.path, []).append(text)
            left -= tokens + mark
    return [(path, "\n\n".join(sorted(held)) + "\n") for path, held in sorted(texts.items())]


def _start_of(text: str, room: int, count: Callable[[str], int]) -> tuple[str, int]:
    """The first lines of a text that take at most `room` tokens, and how many they take."""
    kept: list[str] = []
    total = _BREAK_TOKENS
    for line in text.split("\n"):
        tokens = count("\n" + line)
        if total + tokens > room:
            break
        kept.append(line)
        total += tokens
    whole = len(kept) >= min(LEAST_LINES, text.count("\n") + 1)
    return ("\n".join(kept), total) if whole else ("", 0)


def diagnostics(snippets: Iterable[Snippet]) -> list[str]:
    """What is wrong near the cursor, in words."""
    return [snippet.text for snippet in snippets if snippet.kind is SnippetKind.DIAGNOSTIC]
