"""What was made of a text, for the texts that were asked for lately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """At most `most` values by text, in two generations: what nobody asks for in one is forgotten.
    So half as many are surely kept.

    A look-up costs one of a dictionary or two, so that a thousand lines can be looked up for a key.
    Threads may share it: at worst something is made twice.
    """

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._young: dict[str, Value] = {}
        self._old: dict[str, Value] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, text: str) -> Value | None:
        """What was made of a text, None when that is not known."""
        found = self._young.get(text)
        if found is None and (found := self._old.pop(text, None)) is not None:
            self.put(text, found)
        return found

    def get_all(self, texts: Sequence[str]) -> list[Value | None]:
        """As `get`, of each text."""
        found = list(map(self._young.get, texts))
        if None in found:
            old = self._old
            for number, text in enumerate(texts):
                if found[number] is not None:
                    continue
                if (known := old.pop(text, None)) is not None:
                    found[number] = self.put(text, known)
                else:  # the same text may have come before
                    found[number] = self.get(text)
        return found

    def put(self, text: str, value: Value) -> Value:
        """Remember what was made of a text."""
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[text] = value
        return value
