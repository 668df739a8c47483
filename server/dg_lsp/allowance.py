"""A time limit shared by the jobs of one request."""

from __future__ import annotations

from collections.abc import Callable


class Allowance:
    """What is left of a time limit, and for how many jobs."""

    def __init__(self, clock: Callable[[], float], limit_ms: int | None) -> None:
        self._clock = clock
        self._ends = None if limit_ms is None else clock() + limit_ms / 1e3
        self.jobs = 1
        """How many jobs are still to come."""

    @property
    def is_spent(self) -> bool:
        """Whether the time is up."""
        return self._ends is not None and self._clock() >= self._ends

    def share_ms(self) -> int | None:
        """Milliseconds for the next job: what is left, shared with the jobs behind it."""
        jobs, self.jobs = max(self.jobs, 1), self.jobs - 1
        if self._ends is None:
            return None
        return max(1, round((self._ends - self._clock()) * 1e3 / jobs))
