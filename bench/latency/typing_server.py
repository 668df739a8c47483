"""The real server for `bench.latency.typing`; it also tells its engine's forwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from dg_engine.engine import Engine
from dg_engine.job import CanvasJob, EngineInfo, Frame, Priority
from dg_lsp.configuration import Configuration
from dg_lsp.engine_host import Backend, child_process
from dg_lsp.language_server import Server
from dg_lsp.server import create_server, run_stdio
from dg_lsp.status import StatusListener


class Counting:
    """An engine that counts the forwards of another."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.forwards: Counter[str] = Counter({"asked": 0, "ahead": 0})

    async def submit(self, job: CanvasJob) -> AsyncIterator[Frame]:
        """Run a job; its forwards count as they happen, a cancelled job's as well."""
        known = 0
        kind = "ahead" if job.priority is Priority.PREFETCH else "asked"
        async for frame in self._engine.submit(job):
            self.forwards[kind] += max(frame.forwards - known, 0)
            known = max(frame.forwards, known)
            yield frame

    async def cancel(self, job_id: str) -> None:
        """As the other."""
        await self._engine.cancel(job_id)

    async def info(self) -> EngineInfo:
        """As the other's."""
        return await self._engine.info()

    async def close(self) -> None:
        """As the other."""
        await self._engine.close()


def counting_server() -> Server:
    """The server with its usual engine, counted."""
    counters: list[Counting] = []

    async def factory(configuration: Configuration, listener: StatusListener) -> Backend:
        backend = await child_process(configuration, listener)
        counters.append(Counting(backend.engine))
        return msgspec.structs.replace(backend, engine=counters[-1])

    server = create_server(factory)
    desk = server.session.desk
    remembers = True

    @server.feature("bench/remember")
    def remember(params: bool) -> None:
        nonlocal remembers
        remembers = params

    @server.feature("bench/forwards")
    async def forwards(params: Any) -> dict[str, int]:
        if not remembers:
            # Every keystroke at a place that was never seen.
            desk.forget()
            desk.habits.latencies.clear()
            session = server.session
            completer = await session.completer(session.settings.server, 60_000)
            completer.memory.clear()
        return dict(counters[0].forwards) if counters else {"asked": 0, "ahead": 0}

    return server


if __name__ == "__main__":
    run_stdio(counting_server)
