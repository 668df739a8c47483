"""The table of faults: each injected in one way, with what is seen of it and how long it lasts."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.daemon_world import World

REPORT = "DG_LSP_FAULTS_REPORT"
"""Names a file that gets one JSON line for each fault that was injected."""
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
