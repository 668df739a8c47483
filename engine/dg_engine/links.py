"""How an engine is reached: a channel to it, opened anew after each end.

`ChildLink` starts the engine as a process of its own; dg_engine.daemon has the link to one that
serves every window.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dg_engine.engine import EngineError

LOG_LINES = 20
LINE_CHARS = 500


class Channel(Protocol):
    """An open connection that carries the frames of dg_engine.wire."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    takes_jobs: bool
    """Whether jobs may be handed over at once, before the model is loaded."""

    @property
    def pid(self) -> int | None:
        """Process id of the engine, where it is ours."""
        ...

    def note(self, line: str) -> None:
        """Keep a line that explains an end."""
        ...

    def cut(self) -> None:
        """End the connection now, and the engine where it is ours."""
        ...

    async def end(self, seconds: float) -> None:
        """End as `cut` does, once the other side has had some seconds to end by itself."""
        ...

    async def why(self) -> str:
        """Why it ended, one sentence; cuts what is left of it."""
        ...


class Link(Protocol):
    """Opens channels."""

    async def open(self) -> Channel:
        """A new channel; raises EngineError when there will be none."""
        ...


class ChildLink:
    """The engine as a child process over its pipes."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)

    async def open(self) -> Channel:
        """Start the process."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            message = f"The engine process cannot be started ({error.strerror})."
            raise EngineError(message) from None
        return _Child(process)


class _Child:
    """A running engine process."""

    takes_jobs = False

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise AssertionError("the child's streams are pipes")
        self.reader = process.stdout
        self.writer = process.stdin
        self._process = process
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._reading = asyncio.create_task(self._read_log(process.stderr))

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def note(self, line: str) -> None:
        self._log.append(line)

    def cut(self) -> None:
        if self._process.returncode is not None:
            return
        # Not process.kill(): that polls, and a child that has just exited would be reaped behind
        # the event loop's back, which then reports a made-up exit code.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(
                self._process.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM
            )

    async def end(self, seconds: float) -> None:
        self.writer.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        self.cut()

    async def why(self) -> str:
        self.cut()
        self.writer.close()  # processes of the engine's own may hold the other end for a while
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._reading, 0.5)
        code = await self._process.wait()
        words = f"signal {-code}" if code < 0 else f"exit code {code}"
        said = f"last line: {self._log[-1]}" if self._log else "it said nothing"
        return f"The engine stopped ({words}; {said})."

    async def _read_log(self, stream: asyncio.StreamReader) -> None:
        """Keep the child's last lines; they never hold prompt text."""
        while line := await stream.readline():
            text = line.decode("utf-8", "replace").strip()
            if text:
                self._log.append(text[:LINE_CHARS])


def child_command(model: Path, threads: int | None, dtype: str | None) -> list[str]:
    """The command of the engine process; see dg_engine.child."""
    # -P: the working directory is the user's project, whose files must not be imported.
    command = [sys.executable, "-P", "-m", "dg_engine.child", "--model", str(model)]
    if threads:
        command += ["--threads", str(threads)]
    if dtype:
        command += ["--dtype", dtype]
    return [*command, "--parent", str(os.getpid())]
