"""Work that nobody waits for, a short piece at a time while no request is in flight."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from typing import Protocol

logger = logging.getLogger(__name__)

PIECE_SECONDS = 0.001
"""About what a piece takes at most: whoever comes meanwhile waits for it."""
PAUSE_SECONDS = 0.004
"""Between two pieces, and before the first."""
QUIET_SECONDS = 0.1
"""Behind a change nothing is begun for so long: more of them may follow at once."""
REST_SECONDS = 0.02
"""How long nothing is in flight before garbage is collected: a key is often followed by another."""
YOUNG_OBJECTS = 50_000
"""Objects that may be made before garbage is collected in the midst of work."""
_MIDDLE_EVERY, _ALL_EVERY = 20, 400
"""Rests of which one collects more than what is young."""

Work = Iterator[object]


class Later(Protocol):
    """As an event loop's `call_later`."""

    def __call__(self, delay: float, callback: Callable[[], None], /) -> object:
        """Call back after so many seconds."""
        ...


class Idle:
    """Does the work that was put last first, and collects garbage when a request has ended."""

    def __init__(
        self,
        is_busy: Callable[[], bool],
        later: Later,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_busy` says whether a request is in flight; `resume` must be called once none is."""
        self._is_busy = is_busy
        self._later = later
        self._clock = clock
        self._quiet_from = 0.0
        self._work: dict[str, Work] = {}
        self._told = self._resting = False
        self._rests = 0

    def __contains__(self, key: str) -> bool:
        return key in self._work

    def put(self, key: str, work: Work) -> None:
        """Do this, a piece for each item, in place of older work of the same key."""
        self._work.pop(key, None)
        self._work[key] = work
        self._go_on()

    def drop(self, key: str) -> None:
        """Leave the rest of a key's work undone."""
        self._work.pop(key, None)

    def clear(self) -> None:
        """Leave all of it undone."""
        self._work.clear()

    def hold(self) -> None:
        """Something was changed."""
        self._quiet_from = self._clock() + QUIET_SECONDS

    def resume(self) -> None:
        """The last request that was in flight has ended."""
        self._go_on()
        if not self._resting:
            self._resting = True
            self._later(REST_SECONDS, self._rest)

    def _go_on(self) -> None:
        if self._work and not self._told:
            self._told = True
            self._later(max(PAUSE_SECONDS, self._quiet_from - self._clock()), self._piece)

    def _piece(self) -> None:
        self._told = False
        if not self._work or self._is_busy():
            return
        if self._clock() < self._quiet_from:
            self._go_on()
            return
        key, work = next(reversed(self._work.items()))
        try:
            next(work)
        except StopIteration:
            self._work.pop(key, None)
        except Exception:
            self._work.pop(key, None)
            logger.exception("Work for later failed.")
        self._go_on()

    def _rest(self) -> None:
        self._resting = False
        if self._is_busy():
            return  # which ends, and then we are told again
        self._rests += 1
        oldest = 0 if self._rests % _MIDDLE_EVERY else 1 if self._rests % _ALL_EVERY else 2
        gc.collect(oldest)


def collect_when_idle() -> None:
    """From now on garbage is collected by `Idle`, unless there is no rest for long."""
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


def in_pieces(steps: Iterator[object], clock: Callable[[], float] = time.perf_counter) -> Work:
    """Small steps, as many in a piece as it has time for."""
    until = clock() + PIECE_SECONDS
    for _ in steps:
        if clock() >= until:
            yield
            until = clock() + PIECE_SECONDS
