"""Milliseconds of stages that follow each other."""

from __future__ import annotations

from collections.abc import Callable

from dg_engine.job import Frame


class Laps:
    """Milliseconds by stage since it was made, each from the end of the one before it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = self._lap = clock()
        self._ms: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """End a stage now; the next one begins."""
        now = self._clock()
        self._ms[stage] = (now - self._lap) * 1e3
        self._lap = now

    def lap_prompt(self, tokenise_ms: float) -> None:
        """End the prompt stage, of which the tokenizer took `tokenise_ms`."""
        self.lap("prompt")
        self._ms["prompt"] -= tokenise_ms
        self._ms["tokenise"] = tokenise_ms

    def skip(self) -> None:
        """Begin a stage now; what went before was somebody else's."""
        self._lap = self._clock()

    def stages(self, frame: Frame | None) -> dict[str, float]:
        """Milliseconds by stage so far, those of an engine's frame among them, and `total`."""
        total = (self._clock() - self._started) * 1e3
        return {**self._ms, **(frame.ms if frame else {}), "total": total}
