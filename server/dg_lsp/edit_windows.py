"""Cutting lines that are too long for one canvas into windows, left to right.

A window's canvas is: the end of what is solved already (pinned), the fresh lines (seeds), and
the first old tokens that follow (pinned). So neighbours overlap on both sides and each window
still sees both of its edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from dg_lsp.prompts.tokens import LONGEST_CHARACTER, is_cut, pieces_of

Encode = Callable[[str], list[int]]
Decode = Callable[[list[int]], str]


class Room(msgspec.Struct, frozen=True):
    """How a canvas is shared out, in tokens."""

    solved: int
    """Pinned in front, of what is solved already."""
    fresh: int
    """Old tokens that may change."""
    pins: int
    """Pinned behind."""

    @classmethod
    def of(cls, canvas: int, pins: int, slack: int) -> Room:
        """A canvas shared out: a quarter in front, at most an eighth behind, room to grow."""
        solved = canvas // 4
        pins = min(pins, canvas // 8)
        return cls(solved, max(canvas - solved - pins - slack, 1), pins)


def windows_of(text: str, encode: Encode, decode: Decode, room: int) -> list[str]:
    """`text` in runs of whole lines of at most `room` tokens; joined again they are `text`.

    A line that is longer than that is cut between two tokens, never inside a character.
    """
    parts = [part for piece in pieces_of(text) for part in _fitting(piece, encode, decode, room)]
    sizes = [len(encode(part)) for part in parts]
    found: list[str] = []
    start = 0
    while start < len(parts):
        end, used = start + 1, sizes[start]
        while end < len(parts) and used + sizes[end] <= room:
            used += sizes[end]
            end += 1
        # Joined, two parts may be more tokens than they were apart.
        while end > start + 1 and len(encode("".join(parts[start:end]))) > room:
            end -= 1
        found.append("".join(parts[start:end]))
        start = end
    return found


def end_of(text: str, encode: Encode, room: int) -> str:
    """The last whole lines of `text` that fit in `room` tokens, empty when none do."""
    kept: list[str] = []
    for piece in reversed(pieces_of(text)):
        room -= len(encode(piece))
        if room < 0:
            break
        kept.append(piece)
    return "".join(reversed(kept))


def _fitting(piece: str, encode: Encode, decode: Decode, room: int) -> Iterable[str]:
    ids = encode(piece)
    while len(ids) > room:
        end = room
        # Near the cut a character may be spread over tokens; with very little room it is cut late.
        while end > max(room - LONGEST_CHARACTER, 1) and is_cut(decode(ids[:end])):
            end -= 1
        while end < len(ids) and is_cut(decode(ids[:end])):
            end += 1
        yield decode(ids[:end])
        ids = ids[end:]
    if ids:
        yield decode(ids)
