"""One measurement at a time: stages that start side by side wait for each other with measuring."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TextIO

TURN = "DG_GPU_TURN"
"""Environment variable: the file that whoever measures holds locked; unset, nobody waits."""


@contextlib.asynccontextmanager
async def turn() -> AsyncIterator[None]:
    """Hold the GPU for measuring."""
    name = os.environ.get(TURN)
    if not name:
        yield
        return
    file = await asyncio.to_thread(_locked, Path(name))
    try:
        yield
    finally:
        file.close()


def _locked(path: Path) -> TextIO:
    file = path.open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file
