"""How long a request that nobody asked for waits, in case the next keystroke makes it pointless."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence

MOST_MS = 200.0
"""A longer wait is felt as a slow model."""
LEAST_MS = 5.0
"""A shorter one saves nothing."""
LATE_SECONDS = 0.002
"""What an event loop adds to a wait at most: it sleeps whole milliseconds, rounded up, does so anew
behind whatever comes meanwhile, and rounds some numbers of them up once more (59 are 60 by the time
that they are nanoseconds). A wait is told to be shorter by this, so that it ends early rather than
late."""
REMEMBERED = 20
"""Latencies and outcomes that count."""


def wait_ms(latencies: Sequence[float], outcomes: Sequence[bool]) -> float:
    """Milliseconds to wait before the engine is asked.

    Args:
        latencies: of the engine's last answers, in milliseconds.
        outcomes: of the last suggestions that were seen, True where one was taken.

    An engine that answers at once need not wait; a slow one would work for nothing, the more so
    the rarer its suggestions are taken. Half of each is assumed of what is not known (Laplace).
    """
    if not latencies:
        return 0.0
    taken = (sum(outcomes) + 1) / (len(outcomes) + 2)
    wait = statistics.median(latencies) * (1 - taken) / 2
    return 0.0 if wait < LEAST_MS else min(wait, MOST_MS)


class Habits:
    """What `wait_ms` needs to know of the last requests."""

    def __init__(self) -> None:
        self.latencies: deque[float] = deque(maxlen=REMEMBERED)
        self.outcomes: deque[bool] = deque(maxlen=REMEMBERED)

    def answered(self, ms: float) -> None:
        """The engine took so long."""
        self.latencies.append(ms)

    def ended(self, *, taken: bool) -> None:
        """A suggestion was taken, or seen and left."""
        self.outcomes.append(taken)

    @property
    def wait_seconds(self) -> float:
        """How long the next automatic request waits."""
        return wait_ms(self.latencies, self.outcomes) / 1e3
