"""An asyncio engine behind the verbs of torch_engine.Worker, for the engine's process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from dg_engine.engine import Engine
from dg_engine.job import CanvasJob, Done, DoneKind, EngineInfo, Frame


class LoopWorker:
    """Owns an engine and the event loop that it lives in.

    `submit` and `cancel` are for other threads; `deliver` is called in the one that works, once per
    frame and exactly once with a `done` frame.
    """

    def __init__(self, start: Coroutine[Any, Any, Engine]) -> None:
        """Run `start` to its end; what it raises is raised here."""
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            self._engine = self._loop.run_until_complete(start)
            self.info: EngineInfo = self._loop.run_until_complete(self._engine.info())
        except BaseException:
            self._loop.close()
            raise

    @property
    def jobs(self) -> int:
        """Jobs that have not ended."""
        return len(self._tasks)

    def submit(self, job: CanvasJob, deliver: Callable[[Frame], None]) -> None:
        """Run a job."""
        self._soon(self._run, job, deliver)

    def cancel(self, job_id: str) -> None:
        """Stop a job within one step."""
        self._soon(self._engine.cancel, job_id)

    def work(self) -> None:
        """Run jobs in this thread until `stop`."""
        self._loop.run_forever()

    def stop(self) -> None:
        """Let `work` return."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def close(self) -> None:
        """End every job with CANCELLED and free the model, once `work` has returned."""
        self._loop.run_until_complete(self._engine.close())
        self._loop.close()

    def _soon(self, begin: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Begin in the loop, in the order of the calls."""

        def begun() -> None:
            task = self._loop.create_task(begin(*arguments))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(begun)

    async def _run(self, job: CanvasJob, deliver: Callable[[Frame], None]) -> None:
        try:
            async for frame in self._engine.submit(job):
                deliver(frame)
        except Exception as error:  # the worker must outlive any one job
            message = f"The engine failed on this job ({type(error).__name__}: {error})."
            deliver(Frame.end_of(job.id, Done(DoneKind.ERROR, message)))
