"""Guesses of what comes next by what came last time: code repeats itself.

Prompt lookup decoding (A. Saxena, 2023): the tokens that followed the same few tokens earlier in
the prompt are a draft that one forward checks as a whole, so a greedy continuation takes fewer
forwards and stays the same.
"""

from __future__ import annotations

LONGEST, SHORTEST = 3, 1
"""Tokens that must agree for a guess; more count more."""


class PromptLookup:
    """Where each short run of tokens was seen last."""

    def __init__(self, ids: list[int]) -> None:
        """`ids` are looked through, the later the better; more may be appended."""
        self._ids = list(ids)
        self._seen: dict[tuple[int, ...], int] = {}
        """Position behind the last occurrence of a run that something follows."""
        for end in range(SHORTEST, len(ids)):
            self._note(end)

    def append(self, token: int) -> None:
        """One token more at the end."""
        self._ids.append(token)
        self._note(len(self._ids) - 1)

    def guess(self, most: int) -> list[int]:
        """Up to `most` tokens that may come next; none when the last ones were never seen."""
        for size in range(LONGEST, SHORTEST - 1, -1):
            at = self._seen.get(tuple(self._ids[-size:]))
            if at is not None:
                return self._ids[at : at + most]
        return []

    def _note(self, end: int) -> None:
        """Note the runs before position `end`, which is known."""
        for size in range(SHORTEST, min(LONGEST, end) + 1):
            self._seen[tuple(self._ids[end - size : end])] = end
