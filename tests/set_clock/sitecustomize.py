"""A wall clock that can be set while processes run: Python imports this first where it finds it.

DG_LSP_TEST_CLOCK names a file with the seconds by which the clock was set. Each process that reads
the clock as it was set notes that in a file beside it: `PID SECONDS`. The monotonic clock stays
what it is, as it does when the clock of a machine is set. What asks the system beside Python's
`time` and `datetime` is not deceived.
"""

from __future__ import annotations

import datetime
import os
import time
from typing import Any

CLOCK = os.environ.get("DG_LSP_TEST_CLOCK", "")
_time, _localtime, _gmtime, _strftime = time.time, time.localtime, time.gmtime, time.strftime
_real = datetime.datetime
_noted: set[float] = set()


def set_by() -> float:
    """By how many seconds the clock was set."""
    try:
        with open(CLOCK, encoding="ascii") as file:
            seconds = float(file.read())
    except (OSError, ValueError):
        return 0.0
    if seconds and seconds not in _noted:
        _noted.add(seconds)
        with open(f"{CLOCK}.read", "a", encoding="ascii") as file:
            file.write(f"{os.getpid()} {seconds:g}\n")
    return seconds


def now() -> float:
    """In place of time.time."""
    return _time() + set_by()


class _Kind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _real)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, _real)


class Datetime(_real, metaclass=_Kind):
    """In place of datetime.datetime."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _real.fromtimestamp(now(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return _real.fromtimestamp(now(), datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return _real.fromtimestamp(now())


def install() -> None:
    """Deceive this process."""
    time.time = now
    time.time_ns = lambda: int(now() * 1e9)
    time.localtime = lambda seconds=None: _localtime(now() if seconds is None else seconds)
    time.gmtime = lambda seconds=None: _gmtime(now() if seconds is None else seconds)
    time.strftime = lambda form, of=None: _strftime(form, time.localtime() if of is None else of)
    datetime.datetime = Datetime


if CLOCK:
    install()
