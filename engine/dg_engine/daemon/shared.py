"""One model for several windows: starts its engine when there is work, and lets go of it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Protocol

import msgspec

from dg_engine.client import LinkedEngine, OnStatus
from dg_engine.daemon.messages import EngineReport, WindowStatus
from dg_engine.daemon.shares import Shares
from dg_engine.engine import EngineError, EngineState, EngineStatus
from dg_engine.job import CanvasJob, Done, DoneKind, EngineInfo, Frame
from dg_engine.wire import PROTOCOL, Changed, Failed, Progress, Ready, Reply

GPU_SLOTS = 32
REMEMBERED = 256
"""Jobs whose times are kept."""


class Attached(Protocol):
    """A window, as far as its engine is concerned."""

    name: str
    pid: int

    def put(self, message: Reply) -> None:
        """Send a message, or let a newer draft of the same job take its place."""
        ...


class _Tally:
    """What one window's jobs came to."""

    def __init__(self) -> None:
        self.done = 0
        self.seconds = 0.0
        self.prompt_tokens = self.cached_tokens = 0
        self.ms: deque[float] = deque(maxlen=REMEMBERED)

    def at(self, part: float) -> float:
        """Milliseconds that this part of the last jobs did not pass."""
        ordered = sorted(self.ms)
        return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else 0.0


class SharedEngine:
    """The jobs of all windows that use one model."""

    def __init__(
        self, model: str, start: Callable[[OnStatus], LinkedEngine], unload_after_s: float
    ) -> None:
        """`start` makes an engine, which is opened when there is work."""
        self.model = model
        self._start = start
        self._unload_after_s = unload_after_s
        self._engine: LinkedEngine | None = None
        self._info: EngineInfo | None = None
        self._status = EngineStatus(EngineState.LOADING, "The model is being loaded.")
        self._shares: Shares[Attached] = Shares(1)
        self._tallies: dict[Attached, _Tally] = {}
        self._arrived: dict[tuple[Attached, str], float] = {}
        self._names: dict[tuple[Attached, str], str] = {}
        """What a window's running job is called in the engine."""
        self._count = 0
        self._generation = 0
        """Of the engine; what an earlier one says is over."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._unloading: asyncio.TimerHandle | None = None
        self._left = time.monotonic()
        """When the last window went."""

    @property
    def unused_s(self) -> float:
        """For how long no window has been attached, in seconds."""
        return 0.0 if self._tallies else time.monotonic() - self._left

    @property
    def windows(self) -> list[Attached]:
        """Who is attached."""
        return list(self._tallies)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits or runs."""
        return not len(self._shares) and not self._names

    def attach(self, window: Attached) -> None:
        """A window came: it is told how the model stands, which is loaded by now or soon."""
        self._tallies[window] = _Tally()
        if self._engine is None:
            self._open()
        if self._info is not None:
            window.put(Ready(self._info, PROTOCOL, 0.0))
        if self._status.state in (EngineState.LOADING, EngineState.RESTARTING):
            window.put(Changed(self._status))

    def leave(self, window: Attached) -> None:
        """A window has gone; its jobs end."""
        self._shares.leave(window)  # first, or its next job would take the place of one that ends
        for owner, job_id in list(self._names):
            if owner is window:
                self.cancel(window, job_id)
        for key in [key for key in self._arrived if key[0] is window]:
            del self._arrived[key]
        self._tallies.pop(window, None)
        self._left = time.monotonic()
        self._pump()

    def submit(self, window: Attached, job: CanvasJob) -> None:
        """Queue a job."""
        waits, runs = self._shares.counts(window)
        if not self._shares.put(window, job):
            message = (
                f"The window has {waits + runs} jobs already, or one named {job.id}; cancel some."
            )
            window.put(Progress(Frame.end_of(job.id, Done(DoneKind.ERROR, message))))
            return
        self._arrived[window, job.id] = time.monotonic()
        if self._engine is None:
            self._open()
        self._pump()

    def focus(self, window: Attached, focused: bool | None) -> None:
        """Whether the user looks at a window; it counts from the next job on."""
        self._shares.focus(window, focused)

    def cancel(self, window: Attached, job_id: str) -> None:
        """Stop a job; it ends with CANCELLED."""
        if self._shares.drop(window, job_id):
            self._arrived.pop((window, job_id), None)
            window.put(Progress(Frame.end_of(job_id, Done(DoneKind.CANCELLED))))
            return
        name = self._names.get((window, job_id))
        if name is not None and self._engine is not None:
            self._shares.let_go(window, job_id)
            self._later(self._engine.cancel(name))
            self._pump()

    async def close(self) -> None:
        """End everything."""
        engine, self._engine = self._engine, None
        if self._unloading is not None:
            self._unloading.cancel()
        if engine is not None:
            await engine.close()
        for task in self._tasks:
            task.cancel()

    def report(self) -> EngineReport:
        """How it stands."""
        pid = self._engine.pid if self._engine is not None else None
        windows = [
            WindowStatus(
                name=window.name,
                pid=window.pid,
                waiting=self._shares.counts(window)[0],
                running=self._shares.counts(window)[1],
                done=tally.done,
                seconds=round(tally.seconds, 3),
                p50_ms=round(tally.at(0.5), 1),
                p90_ms=round(tally.at(0.9), 1),
                cached=round(tally.cached_tokens / max(tally.prompt_tokens, 1), 3),
                focused=self._shares.focused(window),
            )
            for window, tally in self._tallies.items()
        ]
        failed = self._status.state is EngineState.FAILED  # and let go of, until somebody comes
        state = self._status.state.value if self._engine is not None or failed else "unloaded"
        memory = None if pid is None else resident_bytes(pid)
        return EngineReport(self.model, state, self._status.message, pid, memory, windows)

    def _open(self) -> None:
        self._generation += 1
        generation = self._generation

        def changed(status: EngineStatus) -> None:
            if generation == self._generation:
                self._changed(status)

        engine = self._engine = self._start(changed)
        self._later(engine.start())
        self._later(self._learn(engine))
        self._rest()

    async def _learn(self, engine: LinkedEngine) -> None:
        """Wait for the model, then give it work."""
        try:
            info = await engine.info()
        except EngineError:
            return  # the state says so as well
        if self._info != info:
            self._info = info
            self._shares.slots = 1 if info.device.startswith("cpu") else GPU_SLOTS
            self._say(Ready(info, PROTOCOL, 0.0))
        self._pump()

    def _changed(self, status: EngineStatus) -> None:
        self._status = status
        if status.state is EngineState.FAILED:
            # Whoever attaches next has it tried again.
            engine, self._engine, self._info = self._engine, None, None
            self._generation += 1
            self._say(Failed(status.message))
            if engine is not None:
                self._later(engine.close())
        elif status.state is EngineState.READY and self._info is not None:
            self._say(Ready(self._info, PROTOCOL, 0.0))  # again, after a crash or a rest
        elif status.state in (EngineState.LOADING, EngineState.RESTARTING):
            self._say(Changed(status))

    def _say(self, message: Reply) -> None:
        for window in self.windows:
            window.put(message)

    def _pump(self) -> None:
        """Start what may start."""
        engine = self._engine
        if engine is None:
            return
        while (next_up := self._shares.take()) is not None:
            window, job = next_up
            self._count += 1
            name = self._names[window, job.id] = str(self._count)
            self._later(self._run(engine, window, job, name))

    async def _run(self, engine: LinkedEngine, window: Attached, job: CanvasJob, name: str) -> None:
        arrived = self._arrived.pop((window, job.id), time.monotonic())
        began = time.monotonic()
        last: Frame | None = None
        try:
            async for frame in engine.submit(msgspec.structs.replace(job, id=name)):
                if frame.done is not None:
                    last = frame
                else:
                    window.put(Progress(msgspec.structs.replace(frame, job=job.id)))
        except EngineError as error:
            last = Frame.end_of(job.id, Done(DoneKind.ERROR, str(error)))
        finally:
            if self._names.get((window, job.id)) == name:
                del self._names[window, job.id]
            ended = time.monotonic()
            self._shares.ended(window, job.id, ended - began)
        if last is None:
            raise AssertionError("a job ended without its last frame")
        self._count_in(window, job, last, ended - began, ended - arrived)
        window.put(Progress(msgspec.structs.replace(last, job=job.id)))
        self._rest()
        self._pump()

    def _count_in(
        self, window: Attached, job: CanvasJob, last: Frame, took: float, passed: float
    ) -> None:
        tally = self._tallies.get(window)
        if tally is None:
            return
        tally.done += 1
        tally.seconds += took
        if last.done is not None and last.done.kind not in (DoneKind.CANCELLED, DoneKind.ERROR):
            tally.ms.append(passed * 1000)
            tally.prompt_tokens += len(job.prompt)
            tally.cached_tokens += last.cached_tokens

    def _rest(self) -> None:
        """Let go of the model some time from now, unless there is work until then."""
        if self._unloading is not None:
            self._unloading.cancel()
        loop = asyncio.get_running_loop()
        self._unloading = loop.call_later(self._unload_after_s, self._unload)

    def _unload(self) -> None:
        engine = self._engine
        if engine is None:
            return
        if not self.is_idle or engine.status.state is EngineState.LOADING:
            self._rest()
            return
        self._engine = None
        self._generation += 1
        self._later(engine.close())

    def _later(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def resident_bytes(pid: int) -> int | None:
    """What a process keeps in memory, where the system says so in /proc."""
    if sys.platform == "win32":
        return None
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        import resource

        return pages * resource.getpagesize()
    return None
