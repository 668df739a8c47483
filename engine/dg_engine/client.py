"""EngineClient: the engine as a child process that may crash alone.

Requests and replies are the messages of dg_engine.wire. A crash ends every running job with one
ERROR frame, is reported with the child's last lines, and the child is started again with backoff;
a model that cannot be loaded is not tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec

from dg_engine.engine import EngineError
from dg_engine.job import CanvasJob, Done, DoneKind, EngineInfo, Frame
from dg_engine.wire import (
    HEADER,
    PROTOCOL,
    Cancel,
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
"""A child that answers no heartbeat for so long is ended and started again."""
BACKOFF_SECONDS = (0.2, 1.0, 3.0, 10.0, 30.0)
STEADY_SECONDS = 60.0
"""A child that lived so long starts the backoff anew."""
CLOSE_SECONDS = 1.0
LOG_LINES = 20


class EngineState(enum.StrEnum):
    """Where the child stands."""

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


class EngineClient:
    """The Engine contract over a child process; see dg_engine.engine for the verbs."""

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
        """
        self._command = list(command) if command else _engine_command(model, threads, dtype)
        self._on_status = on_status
        self._backoff = tuple(backoff_seconds)
        self._process: asyncio.subprocess.Process | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._jobs: dict[str, _Waiting] = {}
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._info: EngineInfo | None = None
        self._changed = asyncio.Event()
        self._closing = False
        self._heard = 0.0
        self._failure = ""
        self.status = EngineStatus(EngineState.LOADING, "The model is being loaded.")

    @property
    def pid(self) -> int | None:
        """Process id of the child while it runs."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the child; returns at once, loading goes on behind."""
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
            elif self.status.state is EngineState.READY:
                await self._send(Submit(job))
            while not finished:
                frame = await waiting.next()
                finished = frame.done is not None
                yield frame
        finally:
            del self._jobs[job.id]
            if not finished and self.status.state is EngineState.READY:
                # Not awaited: this also runs while the caller's task is being cancelled.
                self._post(Cancel(job.id))

    async def cancel(self, job_id: str) -> None:
        """Stop a job within one denoise step; its iterator ends with CANCELLED."""
        waiting = self._jobs.get(job_id)
        if waiting is None:
            return
        if self.status.state is EngineState.READY:
            await self._send(Cancel(job_id))
        else:
            waiting.put(Frame(job=job_id, step=0, ids=[], done=Done(DoneKind.CANCELLED)))

    async def info(self) -> EngineInfo:
        """What is loaded, waiting until it is; raises EngineError when loading failed."""
        while self._info is None:
            if self.status.state in (EngineState.FAILED, EngineState.CLOSED):
                raise EngineError(self.status.message)
            self._changed.clear()
            await self._changed.wait()
        return self._info

    async def close(self) -> None:
        """End every job with CANCELLED and the child within about a second."""
        self._closing = True
        for job_id, waiting in list(self._jobs.items()):
            waiting.put(Frame(job=job_id, step=0, ids=[], done=Done(DoneKind.CANCELLED)))
        process = self._process
        if process is not None and process.returncode is None:
            self._post(Close())
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), CLOSE_SECONDS)
            _kill(process)
        if self._supervisor is not None:
            self._supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervisor
        self._set(EngineStatus(EngineState.CLOSED, "The engine is closed."))

    async def _supervise(self) -> None:
        """Run the child again and again until it cannot load or we close."""
        failures = 0
        while not self._closing:
            self._set(EngineStatus(EngineState.LOADING, "The model is being loaded."))
            began = time.monotonic()
            reason = await self._run_child()
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

    async def _run_child(self) -> str:
        """Start the child and read it to its end; returns why it ended, one sentence."""
        self._log.clear()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            self._failure = f"The engine process cannot be started ({error.strerror})."
            return self._failure
        self._process = process
        self._heard = time.monotonic()
        helpers = [
            asyncio.create_task(self._read_log(process)),
            asyncio.create_task(self._heartbeat(process)),
        ]
        try:
            await self._read_replies(process)
        finally:
            _kill(process)
            for helper in helpers[1:]:
                helper.cancel()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(helpers[0], 0.5)
            self._process = None
        code = await process.wait()
        last = self._log[-1] if self._log else "it said nothing"
        return f"The engine stopped ({_exit_words(code)}; last line: {last})."

    async def _read_replies(self, process: asyncio.subprocess.Process) -> None:
        stream = process.stdout
        if stream is None:
            raise AssertionError("the child's output is a pipe")
        try:
            while True:
                header = await stream.readexactly(HEADER.size)
                body = await stream.readexactly(body_length(header))
                self._heard = time.monotonic()
                await self._take(unpack_reply(body))
        except asyncio.IncompleteReadError:
            return
        except WireError as error:
            self._log.append(str(error))

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
                    if self._process is not None:
                        _kill(self._process)
                    return
                self._info = info
                message = f"{info.model} is ready on {info.device} after {seconds:.1f} s."
                self._set(EngineStatus(EngineState.READY, message))
                for waiting in list(self._jobs.values()):
                    await self._send(Submit(waiting.job))
            case Failed(message):
                self._failure = message
            case Pong():
                pass

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        """Keep the child's last lines; they never hold prompt text."""
        stream = process.stderr
        if stream is None:
            raise AssertionError("the child's log is a pipe")
        while line := await stream.readline():
            text = line.decode("utf-8", "replace").strip()
            if text:
                self._log.append(text[:500])

    async def _heartbeat(self, process: asyncio.subprocess.Process) -> None:
        count = 0
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if self.status.state is not EngineState.READY:
                self._heard = time.monotonic()  # loading may take long and says nothing
                continue
            if time.monotonic() - self._heard > SILENCE_SECONDS:
                self._log.append(f"no sign of life for {SILENCE_SECONDS:g} s")
                _kill(process)
                return
            count += 1
            self._post(Ping(count))

    def _post(self, request: Request) -> None:
        """Write without waiting for the pipe to drain."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        with contextlib.suppress(OSError, RuntimeError):
            process.stdin.write(pack(request))

    async def _send(self, request: Request) -> None:
        self._post(request)
        process = self._process
        if process is not None and process.stdin is not None:
            # A child that died meanwhile is noticed by its reader, which ends the jobs.
            with contextlib.suppress(OSError):
                await process.stdin.drain()

    def _fail_jobs(self, message: str) -> None:
        for job_id, waiting in list(self._jobs.items()):
            waiting.put(_error(job_id, message))

    def _set(self, status: EngineStatus) -> None:
        self.status = status
        self._changed.set()
        if self._on_status is not None:
            self._on_status(status)


def _engine_command(model: Path, threads: int | None, dtype: str | None) -> list[str]:
    # -P: the working directory is the user's project, whose files must not be imported.
    command = [sys.executable, "-P", "-m", "dg_engine.child", "--model", str(model)]
    if threads:
        command += ["--threads", str(threads)]
    if dtype:
        command += ["--dtype", dtype]
    return [*command, "--parent", str(os.getpid())]


def _error(job_id: str, message: str) -> Frame:
    return Frame(job=job_id, step=0, ids=[], done=Done(DoneKind.ERROR, message))


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    # Not process.kill(): that polls, and a child that has just exited would be reaped behind the
    # event loop's back, which then reports a made-up exit code.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)


def _exit_words(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
