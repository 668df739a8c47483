"""Keys and values of earlier prompts, kept so that the next prompt encodes only what is new."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from dg_engine.model import KeyValues


class Reuse(NamedTuple):
    """A cached start of a prompt."""

    length: int
    past: KeyValues | None


class PrefixCache:
    """Prompts by their token ids, least recently used out first, bounded in bytes.

    The longest common prefix counts, not the document: two windows on one file share it.
    """

    def __init__(self, max_bytes: int, spare: int = 0) -> None:
        """Hold at most `max_bytes`.

        A prompt makes room for one that it shares all but `spare` tokens with: what is typed at
        one place is one prompt, not one for each key, and costs that many tokens to encode anew.
        """
        self._max_bytes = max_bytes
        self._spare = spare
        self._entries: OrderedDict[tuple[int, ...], KeyValues] = OrderedDict()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Memory held by all entries."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def longest(self, prompt: list[int]) -> Reuse:
        """The longest cached start of `prompt`, at most all but its last token.

        The last token is always encoded anew: its hidden state is what the causal mode and the
        judge go on from.
        """
        best: tuple[int, ...] | None = None
        length = 0
        for ids in self._entries:
            common = _common(ids, prompt, len(prompt) - 1)
            if common > length:
                best, length = ids, common
        if best is None:
            return Reuse(0, None)
        self._entries.move_to_end(best)
        return Reuse(length, self._entries[best].crop(length))

    def put(self, prompt: list[int], past: KeyValues) -> None:
        """Keep a prompt; entries that are starts of it, or nearly, are dropped: it serves them."""
        ids = tuple(prompt)
        for other in list(self._entries):
            if _common(other, prompt, len(prompt)) >= len(other) - self._spare:
                self._drop(other)
        self._entries[ids] = past
        self._bytes += past.nbytes
        while self._bytes > self._max_bytes and self._entries:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._bytes = 0

    def _drop(self, ids: tuple[int, ...]) -> None:
        self._bytes -= self._entries.pop(ids).nbytes


def _common(ids: tuple[int, ...], prompt: list[int], limit: int) -> int:
    length = min(len(ids), limit)
    for index in range(length):
        if ids[index] != prompt[index]:
            return index
    return length
