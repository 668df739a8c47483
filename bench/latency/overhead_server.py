"""The real server for `bench.latency.overhead`, which also says what its event loop did, and when.

As `bench.latency.through_server`, and every callback that the loop ran is noted with the time that
it took and the processor time of it, as are the stages of each completion, the waits for the engine
and those for the next key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dg_engine.job import CanvasJob, Priority
from dg_lsp import server as entry
from dg_lsp.completion import Completer
from dg_lsp.context.keeper import Keeper
from dg_lsp.results import Completion
from dg_lsp.runner import Answer, Runner
from dg_lsp.shown import desk
from dg_lsp.shown.debounce import Habits

from bench.latency import through_server
from bench.latency.through_server import noted


def _watch_loop() -> None:
    """Every callback: "loop" from when until when, "processor" for how much of it."""
    run = asyncio.Handle._run

    def ran(self: asyncio.Handle) -> None:
        spent = time.thread_time()  # which takes some microseconds to ask for: not of the callback
        began = time.perf_counter()
        run(self)
        ended = time.perf_counter()
        noted.append(("loop", began, ended))
        noted.append(("processor", began, began + time.thread_time() - spent))

    asyncio.Handle._run = ran


def _watch_stages() -> None:
    """What a completion does beside what `through_server` notes."""
    complete_at, run, at = Completer.complete_at, Runner.run, Keeper.at

    async def completed(self: Completer, *given: Any, **named: Any) -> Completion:
        found = await complete_at(self, *given, **named)
        if named.get("priority") is not Priority.PREFETCH:
            ended = time.perf_counter()
            for stage in ("prompt", "tokenise", "suggest"):
                noted.append((f"of it {stage}", ended - found.ms[stage] / 1e3, ended))
        return found

    async def asked(self: Runner, job: CanvasJob, *given: Any, **named: Any) -> Answer:
        began = time.perf_counter()
        try:
            return await run(self, job, *given, **named)
        finally:
            if job.priority is not Priority.PREFETCH:
                noted.append(("engine", began, time.perf_counter()))

    def chosen(self: Keeper, *given: Any) -> Any:
        began = time.perf_counter()
        try:
            return at(self, *given)
        finally:
            noted.append(("of it context", began, time.perf_counter()))

    Completer.complete_at, Runner.run, Keeper.at = completed, asked, chosen


def _watch_waits() -> None:
    """The wait for the next key that goes before an engine is asked: "wait" what is left of it
    when the job is ready, "meant" all of it."""
    make = desk.Desk.__init__
    meant = Habits.wait_seconds.fget
    assert meant is not None

    def asked(self: Habits) -> float:
        began, seconds = time.perf_counter(), meant(self)
        noted.append(("meant", began, began + seconds))
        return seconds

    Habits.wait_seconds = property(asked)  # pyright: ignore[reportAttributeAccessIssue]

    def made(
        self: desk.Desk,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *more: Callable[[], float],
    ) -> None:
        async def slept(seconds: float) -> None:
            began = time.perf_counter()
            try:
                await sleep(seconds)
            finally:
                noted.append(("wait", began, time.perf_counter()))

        make(self, slept, *more)

    desk.Desk.__init__ = made


def main() -> None:
    """Serve."""
    _watch_loop()
    _watch_stages()
    _watch_waits()
    through_server.watch()
    server = entry.create_server()
    through_server.hand_over(server)
    entry.run_stdio(lambda: server)


if __name__ == "__main__":
    main()
