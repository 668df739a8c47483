"""One measurement at a time: what starts side by side waits for each other with measuring."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

TURN = "DG_GPU_TURN"
"""Environment variable: the file that whoever measures holds locked; unset, nobody waits."""


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold the GPU for measuring."""
    name = os.environ.get(TURN)
    if not name:
        yield
        return
    with Path(name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.asynccontextmanager
async def turn() -> AsyncIterator[None]:
    """The same where other tasks go on meanwhile."""
    waiting = held()
    await asyncio.to_thread(waiting.__enter__)
    try:
        yield
    finally:
        waiting.__exit__(None, None, None)
