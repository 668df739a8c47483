"""Brackets and quotes that an editor closes by itself, behind the cursor, as one types."""

from __future__ import annotations

_CLOSER = {"(": ")", "[": "]", "{": "}"}
_QUOTES = frozenset("\"'`")
CLOSERS = frozenset(_CLOSER.values()) | _QUOTES
MOST_CLOSERS = 8
"""More than an editor has added behind one suggestion."""


def owed_closers(typed: str) -> str:
    """What would close everything that `typed` leaves open, innermost first."""
    open_: list[str] = []
    quote = ""
    escaped = False
    for character in typed:
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\"
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        elif character in _CLOSER:
            open_.append(_CLOSER[character])
        elif open_ and character == open_[-1]:
            open_.pop()
    return quote + "".join(reversed(open_))


def are_owed(closers: str, typed: str) -> bool:
    """Whether an editor may have added `closers` behind `typed`: all that it owes, or a part.

    Not every editor closes every kind, so the innermost or the outermost ones may be missing.
    """
    if not closers:
        return True
    owed = owed_closers(typed)
    return owed.startswith(closers) or owed.endswith(closers)


def may_be_paired(typed: str) -> bool:
    """Whether the end of `typed` may be closers that an editor added, the cursor before them.

    Any closer at the end may be: what it closed can have been typed and erased again meanwhile.
    """
    return typed[-1:] in CLOSERS
