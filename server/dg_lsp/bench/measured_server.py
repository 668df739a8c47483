"""The real server over standard streams, telling what an editor does not see.

`python -m dg_lsp.bench.measured_server`, with `--forgetful` without type-through, warm start and
cache. Notifications `bench/job` tell of each canvas job when
it ends and `bench/completion` of each completion; the request `bench/lag` says how late the event
loop was since it was asked last. Times are of `time.perf_counter`, which processes of one machine
share.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
from dg_engine.engine import Engine
from dg_engine.job import CanvasJob, EngineInfo, Frame, Priority

from dg_lsp.bench.records import COMPLETION, JOB, LAG, CompletionRecord, JobRecord, LagRecord
from dg_lsp.completion import Completer
from dg_lsp.configuration import Configuration
from dg_lsp.engine_host import Backend, EngineFactory, chosen_engine
from dg_lsp.language_server import Server
from dg_lsp.prompts.view import CursorView
from dg_lsp.results import Completion
from dg_lsp.server import create_server, run_stdio
from dg_lsp.shown.desk import Request, Served
from dg_lsp.status import StatusListener

FORGETFUL = "--forgetful"
LEFT = "left"
"""How a job ended whose reader went away."""
TICK_SECONDS = 0.005


class CountedEngine:
    """An engine whose jobs are told of."""

    def __init__(self, engine: Engine, tell: Callable[[JobRecord], None]) -> None:
        self._engine = engine
        self._tell = tell

    async def submit(self, job: CanvasJob) -> AsyncIterator[Frame]:
        """As the engine's, and tell when it ends."""
        started = time.perf_counter()
        done, forwards = LEFT, 0
        try:
            async for frame in self._engine.submit(job):
                forwards = max(forwards, frame.forwards)
                if frame.done is not None:
                    done = frame.done.kind.value
                yield frame
        finally:
            ahead = job.priority is Priority.PREFETCH
            self._tell(JobRecord(started, time.perf_counter(), done, forwards, ahead))

    async def cancel(self, job_id: str) -> None:
        """As the engine's."""
        await self._engine.cancel(job_id)

    async def info(self) -> EngineInfo:
        """As the engine's."""
        return await self._engine.info()

    async def close(self) -> None:
        """As the engine's."""
        await self._engine.close()


def waited_ms() -> float | None:
    """How long this process' main thread was ready and had no processor, since it began.

    None where the system does not tell: only Linux does (Documentation/scheduler/sched-stats.rst).
    """
    try:
        return int(Path("/proc/self/schedstat").read_text(encoding="ascii").split()[1]) / 1e6
    except (OSError, IndexError, ValueError):
        return None


class LagMeter:
    """Measures the event loop from inside, from the first time that it is asked."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self._own: list[float] = []
        self._task: asyncio.Task[None] | None = None

    def take(self) -> LagRecord:
        """What was measured since the last time."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        late, self._late = self._late, []
        own, self._own = self._own, []
        return LagRecord([round(ms, 2) for ms in late], [round(ms, 2) for ms in own])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            waited = waited_ms()
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            late = max(0.0, (loop.time() - due) * 1e3)
            self._late.append(late)
            if waited is not None and (now := waited_ms()) is not None:
                self._own.append(max(0.0, late - (now - waited)))


def measured(factory: EngineFactory = chosen_engine) -> Server:
    """A server that tells of its work."""

    async def counted(configuration: Configuration, listener: StatusListener) -> Backend:
        backend = await factory(configuration, listener)
        engine = CountedEngine(backend.engine, lambda record: tell(JOB, record))
        return msgspec.structs.replace(backend, engine=engine)

    server = create_server(counted)
    meter = LagMeter()

    def tell(method: str, record: msgspec.Struct) -> None:
        server.wire.notify(method, msgspec.to_builtins(record))

    def report_lag(params: Any) -> object:
        return msgspec.to_builtins(meter.take())

    server.feature(LAG)(report_lag)
    _tell_completions(lambda record: tell(COMPLETION, record))
    return server


def _tell_completions(tell: Callable[[CompletionRecord], None]) -> None:
    """Wrap the completer of this process: what it returns goes into suggestions and is gone."""
    inner = Completer.complete_at

    async def told(self: Completer, view: CursorView, **options: Any) -> Completion:
        started = time.perf_counter()
        found = await inner(self, view, **options)
        tell(CompletionRecord(started, time.perf_counter(), found.reason, found.ms))
        return found

    Completer.complete_at = told


def forgetful() -> Server:
    """A measured server to which every key is at a place that it never saw."""
    server = measured()
    desk = server.session.desk
    fitting = desk.fitting

    def fitting_nothing(request: Request, completer: Completer | None = None) -> Served | None:
        desk.forget()
        desk.habits.latencies.clear()
        if completer is not None:
            completer.memory.clear()
        return fitting(request, completer)

    desk.fitting = fitting_nothing
    return server


if __name__ == "__main__":
    run_stdio(forgetful if FORGETFUL in sys.argv[1:] else measured)
