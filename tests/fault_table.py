"""The table of faults: each injected in one way, with what is seen of it and how long it lasts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import psutil
import pytest
from dg_engine.daemon import link
from dg_engine.daemon.messages import PROTOCOL, Hello
from dg_engine.job import Done, Frame

from tests.daemon_world import World
from tests.scripted_daemon import CHILD

REPORT = "DG_LSP_FAULTS_REPORT"
"""Names a file that gets one JSON line for each fault that was injected."""
AGAIN = "“restarting” for a moment; what ran ends empty, the next request is answered"
NOTHING = "nothing"
OWN = "nothing; the window runs an engine of its own"
RECOVERED_SECONDS = 10.0
"""No fault may last longer, the start of processes on a busy machine included."""

Injection = Callable[[World], Awaitable[float]]
"""Injects the fault, checks what is seen, and returns how many seconds it lasted."""


class Fault(NamedTuple):
    """One row."""

    what: str
    seen: str
    inject: Injection


FAULTS: dict[str, Fault] = {}


def fault(what: str, seen: str) -> Callable[[Injection], Injection]:
    """Add a row; `seen` says what a window's user notices."""

    def add(inject: Injection) -> Injection:
        if what in FAULTS:
            raise ValueError(f"{what} is in the table twice.")
        FAULTS[what] = Fault(what, seen, inject)
        return inject

    return add


def report(row: Fault, seconds: float) -> None:
    """Write a row where a report is wanted."""
    path = os.environ.get(REPORT)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"what": row.what, "seen": row.seen, "seconds": seconds}) + "\n")


def hello(**fields: object) -> Hello:
    """What a raw connection says first."""
    return Hello(
        **{
            **{"protocol": PROTOCOL, "version": "1.0", "pid": 1, "name": "raw"},
            **{"model": "raw", **fields},
        }  # pyright: ignore[reportArgumentType]
    )


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def last_of(frames: list[Frame]) -> Done:
    """The end of a job; there is one, and it is the last frame."""
    ends = [frame.done for frame in frames if frame.done is not None]
    assert len(ends) == 1
    assert frames[-1].done is ends[0]
    return ends[0]


def own_engine(patch: pytest.MonkeyPatch) -> None:
    """What a window runs where there is no daemon for it."""
    patch.setattr(link, "engine_command", lambda _: [sys.executable, "-P", str(CHILD)])
