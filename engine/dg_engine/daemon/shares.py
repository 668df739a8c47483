"""Who goes next: priorities first, then the window in focus, none beyond its share of the engine.

A window may have BURST_SECONDS more of the engine than the one that has had the least and wants
some. Beyond, the order is what each has had. Up to there it is what the user sees: the window in
focus, then the one that was typed in last. After FOCUS_TURNS past others that wait the focus lets
one of them go.

So whoever waits waits for at most BURST_SECONDS and one job of each other window, whichever has the
focus and however often that changes. Seconds alone would not do: a window that asks for one job at
a time has no claim left from the time between, and a flood in focus would take its burst before
each of them. Turns alone would not do either: one takes 5 ms or 5 s.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec

from dg_engine.job import CanvasJob, Priority

BURST_SECONDS = 0.5
"""How much more of the engine the window that goes first may have than the others."""
FOCUS_TURNS = 3
"""How many jobs in a row the window in focus may have while another waits with one as urgent. Who
types wants one at a time, two where a suggestion is looked for ahead: more is a flood."""
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
    focused: bool | None = None


class Shares(Generic[W]):
    """The waiting and running jobs of all windows of one engine."""

    def __init__(self, slots: int) -> None:
        """`slots` jobs of each priority run at once, so that an urgent one never waits in line."""
        self.slots = slots
        self._shares: dict[W, _Share] = {}
        self._count = 0
        self._in_a_row: dict[Priority, int] = {}
        """How many jobs of windows in focus went past others that wait, by rank."""

    def __len__(self) -> int:
        """Jobs that wait or run."""
        return sum(len(s.waiting) + len(s.running) for s in self._shares.values())

    def counts(self, window: W) -> tuple[int, int]:
        """How many jobs of a window wait and run."""
        share = self._shares.get(window, _Share())
        return len(share.waiting), len(share.running)

    def focus(self, window: W, focused: bool | None) -> None:
        """Whether the user looks at a window; None where nobody knows, which counts as no."""
        self._shares.setdefault(window, _Share()).focused = focused

    def focused(self, window: W) -> bool | None:
        """What was said of a window's focus last."""
        return self._shares.get(window, _Share()).focused

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
        found: list[tuple[tuple[int, float, int, int], W, CanvasJob]] = []
        for window, share in self._shares.items():
            job = min(share.waiting.values(), key=lambda j: j.priority, default=None)
            if job is None or self._running(job.priority) >= self.slots:
                continue
            beyond = max(share.had - level - BURST_SECONDS, 0.0)
            place = self._place(share, job.priority)
            found.append(((int(job.priority), beyond, place, -share.typed), window, job))
        if not found:
            return None
        _, window, job = min(found, key=lambda one: one[0])
        share = self._shares[window]
        passes = any(
            other.priority == job.priority and not self._shares[whose].focused
            for _, whose, other in found
        )
        before = self._in_a_row.get(job.priority, 0)
        self._in_a_row[job.priority] = before + 1 if share.focused and passes else 0
        del share.waiting[job.id]
        share.running[job.id] = job.priority
        return window, job

    def _place(self, share: _Share, priority: Priority) -> int:
        """Of a window among those within their shares; the least goes first."""
        if not share.focused:
            return 1
        return 0 if self._in_a_row.get(priority, 0) < FOCUS_TURNS else 2

    def _running(self, priority: Priority) -> int:
        return sum(
            running == priority for s in self._shares.values() for running in s.running.values()
        )

    def _level(self) -> float:
        """What the window has had that has had the least, of those that want something."""
        return min((s.had for s in self._shares.values() if s.waiting or s.running), default=0.0)
