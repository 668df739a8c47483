"""The contract that every engine keeps (submit, cancel, info, close), and the states it tells."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from dg_engine.job import CanvasJob, EngineInfo, Frame


class EngineError(Exception):
    """An engine that cannot serve; its message is one sentence that says what to do."""


class EngineDown(EngineError):
    """An engine elsewhere that does not answer now and may do so later."""


class EngineState(enum.StrEnum):
    """Where the engine stands."""

    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    CLOSED = "closed"


class EngineStatus(msgspec.Struct, frozen=True):
    """A change of state, for people: one sentence and, when restarting, how soon."""

    state: EngineState
    message: str
    retry_in_s: float | None = None


class Engine(Protocol):
    """Runs canvas jobs. Every job yields frames and ends with exactly one whose `done` is set."""

    def submit(self, job: CanvasJob) -> AsyncIterator[Frame]:
        """Run a job; leaving the iterator early cancels it."""
        ...

    async def cancel(self, job_id: str) -> None:
        """Stop a job within one denoise step; unknown ids are ignored."""
        ...

    async def info(self) -> EngineInfo:
        """Say what is loaded, waiting until it is; raises EngineError when loading failed."""
        ...

    async def close(self) -> None:
        """End every job with CANCELLED and free the model."""
        ...
