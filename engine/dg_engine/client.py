"""Engines that are reached through a link and may crash alone; EngineClient has one as its child.

Requests and replies are the messages of dg_engine.wire. A crash ends every running job with one
ERROR frame, is reported with the engine's last lines, and the link is opened again with backoff;
a model that cannot be loaded is not tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from dg_engine.engine import EngineError, EngineState, EngineStatus
from dg_engine.job import CanvasJob, Done, DoneKind, EngineInfo, Frame
from dg_engine.links import Channel, ChildLink, Link, child_command
from dg_engine.wire import (
    HEADER,
    PROTOCOL,
    Cancel,
    Changed,
    Close,
    Failed,
    Ping,
    Pong,
    Progress,
    Ready,
    Reply,
    Request,
    Submit,
    WireError,
    body_length,
    pack,
    unpack_reply,
)

HEARTBEAT_SECONDS = 2.0
SILENCE_SECONDS = 30.0
"""An engine that answers no heartbeat for so long is ended and started again."""
BACKOFF_SECONDS = (0.2, 1.0, 3.0, 10.0, 30.0)
STEADY_SECONDS = 60.0
"""A channel that lasted so long starts the backoff anew."""
CLOSE_SECONDS = 1.0


OnStatus = Callable[[EngineStatus], None]


class _Waiting:
    """A submitted job: the newest frame that its reader has not seen yet."""

    def __init__(self, job: CanvasJob) -> None:
        self.job = job
        self._newest: Frame | None = None
        self._arrived = asyncio.Event()

    def put(self, frame: Frame) -> None:
        """A draft replaces the one before it; nothing replaces the last frame."""
        if self._newest is None or self._newest.done is None:
            self._newest = frame
        self._arrived.set()

    async def next(self) -> Frame:
        await self._arrived.wait()
        self._arrived.clear()
        if self._newest is None:
            raise AssertionError("woken without a frame")
        frame, self._newest = self._newest, None
        return frame


class LinkedEngine:
    """The Engine contract over a link; see dg_engine.engine for the verbs."""

    def __init__(
        self,
        link: Link,
        *,
        on_status: OnStatus | None = None,
        backoff_seconds: Sequence[float] = BACKOFF_SECONDS,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            link: how the engine is reached.
            on_status: told of every change of state, in the event loop.
            backoff_seconds: waits between one end and the next try; the last one stays.
        """
        self._link = link
        self._on_status = on_status
        self._backoff = tuple(backoff_seconds)
        self._channel: Channel | None = None
        self._takes_jobs = False
        """Whether what is at the channel's other end takes jobs by now."""
        self._supervisor: asyncio.Task[None] | None = None
        self._jobs: dict[str, _Waiting] = {}
        self._info: EngineInfo | None = None
        self._changed = asyncio.Event()
        self._closing = False
        self._heard = 0.0
        self._failure = ""
        self.status = EngineStatus(EngineState.LOADING, "The model is being loaded.")

    @property
    def pid(self) -> int | None:
        """Process id of the engine while it runs, where it is ours."""
        return self._channel.pid if self._channel else None

    async def start(self) -> None:
        """Open the link; returns at once, loading goes on behind."""
        if self._supervisor is None:
            self._supervisor = asyncio.create_task(self._supervise(), name="dg-engine-supervisor")

    async def submit(self, job: CanvasJob) -> AsyncIterator[Frame]:
        """Run a job; leaving the iterator early cancels it.

        Waits while the model loads. Ends with an ERROR frame when the engine cannot serve.
        """
        if job.id in self._jobs:
            raise EngineError(f"A job named {job.id} is running; use another id.")
        waiting = _Waiting(job)
        self._jobs[job.id] = waiting
        finished = False
        try:
            if self.status.state in (EngineState.FAILED, EngineState.CLOSED):
                waiting.put(_error(job.id, self.status.message))
            elif self._takes_jobs:
                await self._send(Submit(job))
            while not finished:
                frame = await waiting.next()
                finished = frame.done is not None
                yield frame
        finally:
            del self._jobs[job.id]
            if not finished and self._takes_jobs:
                # Not awaited: this also runs while the caller's task is being cancelled.
                self._post(Cancel(job.id))

    async def cancel(self, job_id: str) -> None:
        """Stop a job within one denoise step; its iterator ends with CANCELLED."""
        waiting = self._jobs.get(job_id)
        if waiting is None:
            return
        if self._takes_jobs:
            await self._send(Cancel(job_id))
        else:
            waiting.put(Frame.end_of(job_id, Done(DoneKind.CANCELLED)))

    async def info(self) -> EngineInfo:
        """What is loaded, waiting until it is; raises EngineError when loading failed."""
        while self._info is None:
            if self.status.state in (EngineState.FAILED, EngineState.CLOSED):
                raise EngineError(self.status.message)
            self._changed.clear()
            await self._changed.wait()
        return self._info

    def set_focus(self, focused: bool | None) -> None:
        """Whether the user looks at this window; of use where others share the engine."""

    async def close(self) -> None:
        """End every job with CANCELLED, and an engine of our own within about a second."""
        self._closing = True
        for job_id, waiting in list(self._jobs.items()):
            waiting.put(Frame.end_of(job_id, Done(DoneKind.CANCELLED)))
        channel = self._channel
        if channel is not None:
            self._post(Close())
            await channel.end(CLOSE_SECONDS)
        if self._supervisor is not None:
            self._supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervisor
        self._set(EngineStatus(EngineState.CLOSED, "The engine is closed."))

    async def _supervise(self) -> None:
        """Open the link again and again until the model cannot be loaded or we close."""
        failures = 0
        while not self._closing:
            self._set(EngineStatus(EngineState.LOADING, "The model is being loaded."))
            began = time.monotonic()
            reason = await self._run_channel()
            self._info = None
            if self._closing:
                return
            if self._failure:
                self._set(EngineStatus(EngineState.FAILED, self._failure))
                self._fail_jobs(self._failure)
                return
            if time.monotonic() - began > STEADY_SECONDS:
                failures = 0
            delay = self._backoff[min(failures, len(self._backoff) - 1)]
            failures += 1
            self._set(
                EngineStatus(
                    EngineState.RESTARTING, f"{reason} It starts again in {delay:g} s.", delay
                )
            )
            self._fail_jobs(reason)
            await asyncio.sleep(delay)

    async def _run_channel(self) -> str:
        """Open a channel and read it to its end; returns why it ended, one sentence."""
        try:
            channel = await self._link.open()
        except EngineError as error:
            self._failure = str(error)
            return self._failure
        self._channel = channel
        self._heard = time.monotonic()
        heartbeat = asyncio.create_task(self._heartbeat(channel))
        try:
            if channel.takes_jobs:
                await self._open_for_jobs()
            await self._read_replies(channel)
        finally:
            self._takes_jobs = False
            channel.cut()
            heartbeat.cancel()
            self._channel = None
        return await channel.why()

    async def _read_replies(self, channel: Channel) -> None:
        stream = channel.reader
        try:
            while True:
                header = await stream.readexactly(HEADER.size)
                body = await stream.readexactly(body_length(header))
                self._heard = time.monotonic()
                await self._take(unpack_reply(body))
        except (asyncio.IncompleteReadError, OSError):
            return
        except WireError as error:
            channel.note(str(error))

    async def _take(self, reply: Reply) -> None:
        match reply:
            case Progress(frame):
                waiting = self._jobs.get(frame.job)
                if waiting is not None:
                    waiting.put(frame)
            case Ready(info, protocol, seconds):
                if protocol != PROTOCOL:
                    self._failure = (
                        f"The engine process speaks protocol {protocol}, not {PROTOCOL}; "
                        "install server and engine from the same version."
                    )
                    if self._channel is not None:
                        self._channel.cut()
                    return
                self._info = info
                after = f" after {seconds:.1f} s" if seconds else ""
                message = f"{info.model} is ready on {info.device}{after}."
                self._set(EngineStatus(EngineState.READY, message))
                await self._open_for_jobs()
            case Changed(status):
                self._set(status)
            case Failed(message):
                self._failure = message
                if self._channel is not None:
                    self._channel.cut()
            case Pong():
                pass

    async def _open_for_jobs(self) -> None:
        """Hand over the jobs that waited."""
        if not self._takes_jobs:
            self._takes_jobs = True
            for waiting in list(self._jobs.values()):
                await self._send(Submit(waiting.job))

    async def _heartbeat(self, channel: Channel) -> None:
        count = 0
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if not self._takes_jobs:
                self._heard = time.monotonic()  # loading may take long and says nothing
                continue
            if time.monotonic() - self._heard > SILENCE_SECONDS:
                channel.note(f"no sign of life for {SILENCE_SECONDS:g} s")
                channel.cut()
                return
            count += 1
            self._post(Ping(count))

    def _post(self, request: Request) -> None:
        """Write without waiting for the channel to drain."""
        channel = self._channel
        if channel is None or channel.writer.is_closing():
            return
        with contextlib.suppress(OSError, RuntimeError):
            channel.writer.write(pack(request))

    async def _send(self, request: Request) -> None:
        self._post(request)
        channel = self._channel
        if channel is not None:
            # An engine that died meanwhile is noticed by our reader, which ends the jobs.
            with contextlib.suppress(OSError):
                await channel.writer.drain()

    def _fail_jobs(self, message: str) -> None:
        for job_id, waiting in list(self._jobs.items()):
            waiting.put(_error(job_id, message))

    def _set(self, status: EngineStatus) -> None:
        self.status = status
        self._changed.set()
        if self._on_status is not None:
            self._on_status(status)


class EngineClient(LinkedEngine):
    """The engine as a child process of this one."""

    def __init__(
        self,
        model: Path,
        *,
        threads: int | None = None,
        dtype: str | None = None,
        on_status: OnStatus | None = None,
        command: Sequence[str] | None = None,
        backoff_seconds: Sequence[float] = BACKOFF_SECONDS,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            model: the checkpoint folder.
            threads: CPU threads of the engine, None for PyTorch's choice.
            dtype: "bfloat16" or "float32", None for what suits the machine.
            on_status: told of every change of state, in the event loop.
            command: what to run instead of the engine process (tests).
            backoff_seconds: waits between a crash and the next start; the last one stays.
        """
        link = ChildLink(command or child_command(model, threads, dtype))
        super().__init__(link, on_status=on_status, backoff_seconds=backoff_seconds)


def _error(job_id: str, message: str) -> Frame:
    return Frame.end_of(job_id, Done(DoneKind.ERROR, message))
