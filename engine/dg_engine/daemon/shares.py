"""Who goes next: priorities first, then the window that has had the least of the engine."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec

from dg_engine.job import CanvasJob, Priority

BURST_SECONDS = 0.5
"""How much more of the engine the window that was typed in last may have than the others."""
MOST_WAITING = 256
"""Jobs of one window."""

W = TypeVar("W")


class _Share(msgspec.Struct):
    """What one window has and wants."""

    waiting: OrderedDict[str, CanvasJob] = msgspec.field(default_factory=OrderedDict)
    running: dict[str, Priority] = msgspec.field(default_factory=dict)
    had: float = 0.0
    """Seconds of the engine, counted from where the others stood when it came."""
    typed: int = 0
    """When it last wanted something interactive, as a count."""


class Shares(Generic[W]):
    """The waiting and running jobs of all windows of one engine."""

    def __init__(self, slots: int) -> None:
        """`slots` jobs of each priority run at once, so that an urgent one never waits in line."""
        self.slots = slots
        self._shares: dict[W, _Share] = {}
        self._count = 0

    def __len__(self) -> int:
        """Jobs that wait or run."""
        return sum(len(s.waiting) + len(s.running) for s in self._shares.values())

    def counts(self, window: W) -> tuple[int, int]:
        """How many jobs of a window wait and run."""
        share = self._shares.get(window, _Share())
        return len(share.waiting), len(share.running)

    def put(self, window: W, job: CanvasJob) -> bool:
        """Queue a job; False when the window has too many already, or one of this id."""
        share = self._shares.get(window)
        if share is None:
            share = self._shares[window] = _Share(had=self._level())
        if job.id in share.waiting or job.id in share.running:
            return False
        if len(share.waiting) >= MOST_WAITING:
            return False
        if not share.waiting and not share.running:
            # Time in which it wanted nothing gives no claim.
            share.had = max(share.had, self._level())
        share.waiting[job.id] = job
        self._count += 1
        if job.priority is Priority.INTERACTIVE:
            share.typed = self._count
        return True

    def drop(self, window: W, job_id: str) -> bool:
        """Take back a waiting job; False when it does not wait."""
        share = self._shares.get(window)
        return share is not None and share.waiting.pop(job_id, None) is not None

    def let_go(self, window: W, job_id: str) -> None:
        """A running job was cancelled: its slot is free at once."""
        share = self._shares.get(window)
        if share is not None:
            share.running.pop(job_id, None)

    def ended(self, window: W, job_id: str, seconds: float) -> None:
        """A job that ran has ended, after so much of the engine's time."""
        share = self._shares.get(window)
        if share is not None:
            share.running.pop(job_id, None)
            share.had += seconds

    def leave(self, window: W) -> None:
        """A window has gone, with all that it wanted."""
        self._shares.pop(window, None)

    def take(self) -> tuple[W, CanvasJob] | None:
        """The next job to run, if one may."""
        level = self._level()
        best: tuple[tuple[int, bool, int], W, CanvasJob] | None = None
        for window, share in self._shares.items():
            job = min(share.waiting.values(), key=lambda j: j.priority, default=None)
            if job is None or self._running(job.priority) >= self.slots:
                continue
            rank = (int(job.priority), share.had > level + BURST_SECONDS, -share.typed)
            if best is None or rank < best[0]:
                best = rank, window, job
        if best is None:
            return None
        _, window, job = best
        share = self._shares[window]
        del share.waiting[job.id]
        share.running[job.id] = job.priority
        return window, job

    def _running(self, priority: Priority) -> int:
        return sum(
            running == priority for s in self._shares.values() for running in s.running.values()
        )

    def _level(self) -> float:
        """What the window has had that has had the least, of those that want something."""
        return min((s.had for s in self._shares.values() if s.waiting or s.running), default=0.0)
