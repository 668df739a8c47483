"""Milliseconds by stage."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the time of each named stage; the clock gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.ms: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Add the time spent inside to a stage."""
        began = self._clock()
        try:
            yield
        finally:
            self.ms[name] = self.ms.get(name, 0.0) + 1000 * (self._clock() - began)
