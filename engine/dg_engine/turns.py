"""How threads of the engine take turns with others on a processor; Linux alone lets us say."""

from __future__ import annotations

import contextlib
import os
import sys


def compute_in_turn() -> None:
    """This thread and those that it starts compute: to wake up pushes nobody else off a processor.

    They keep their share of it. Otherwise a server that is about to answer loses its processor to
    the engine's threads, for 3 to 4 ms in one answer of fifty on two processors.
    """
    if sys.platform.startswith("linux"):
        _change(os.SCHED_OTHER, os.SCHED_BATCH)


def answer_at_once() -> None:
    """This thread waits for messages, though one that computes has started it."""
    if sys.platform.startswith("linux"):
        _change(os.SCHED_BATCH, os.SCHED_OTHER)


def _change(old: int, new: int) -> None:
    """Another way of taking turns, unless the user chose one for us."""
    with contextlib.suppress(OSError):  # a sandbox may refuse
        if os.sched_getscheduler(0) == old:
            os.sched_setscheduler(0, new, os.sched_param(0))
