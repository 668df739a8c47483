"""The daemon on Windows: a named pipe that only its user can open, and a process without a window.

Never run on Windows. tests/test_daemon_on_windows.py runs all of it elsewhere, over a stand-in for
`win32`, which holds the calls of the system.
"""

from __future__ import annotations

import sys

if sys.platform != "win32":
    raise ImportError("Linux and macOS have dg_engine.daemon.posix.")

import asyncio
import logging
import os
import signal
import subprocess
from asyncio.windows_utils import PipeHandle
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from dg_engine.daemon import win32
from dg_engine.daemon.place import Place
from dg_engine.engine import EngineError

logger = logging.getLogger(__name__)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Endpoint:
    """The pipe of one daemon; to have made the first of its name is the lock."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._free: PipeHandle | None = None
        """The pipe that the next window opens."""
        self._accepting: asyncio.Task[None] | None = None
        self._serve: Serve | None = None

    def open(self) -> bool:
        """Make the first pipe of the name; False when another process has. Raises OSError."""
        try:
            self._free = self._made(first=True)
        except OSError as error:
            if error.winerror in (win32.ERROR_ACCESS_DENIED, win32.ERROR_PIPE_BUSY):
                return False
            raise
        return True

    async def listen(self, serve: Serve) -> None:
        """Hand every connection to `serve`."""
        self._serve = serve
        self._accepting = asyncio.create_task(self._accept(serve))

    async def mend(self) -> bool:
        """Accept again where that failed; False when another daemon may serve, which is never."""
        if self._accepting is not None and self._accepting.done() and self._serve is not None:
            logger.warning("No window could come (%s); it is tried again.", _end(self._accepting))
            await self.listen(self._serve)
        return True

    def close(self) -> None:
        """Take no more connections."""
        if self._accepting is not None:
            self._accepting.cancel()
        if self._free is not None:
            self._free.close()
            self._free = None

    def release(self) -> None:
        """Let another daemon serve: it can once the last connection is closed."""

    async def _accept(self, serve: Serve) -> None:
        while True:
            pipe, self._free = self._free or self._made(first=False), None
            try:
                # Made before the wait, so that a window never finds the name without a pipe.
                self._free = self._made(first=False)
                await win32.accept(pipe)
            except BrokenPipeError:  # whoever it was has gone
                pipe.close()
            except BaseException:
                pipe.close()
                raise
            else:
                protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(), serve)
                win32.attach(pipe, protocol)

    def _made(self, *, first: bool) -> PipeHandle:
        security = descriptor(win32.user_sid())
        return win32.make_pipe(self._place.address, security, first=first)


async def connect(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the daemon.

    Raises OSError where none serves, EngineError where another user does.
    """
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    try:
        transport = await win32.connect(place.address, protocol)
    except PermissionError:
        raise _another(place) from None
    # Before the first byte: until then whoever serves cannot act in this user's name.
    if not win32.is_server_mine(transport):
        transport.abort()
        raise _another(place)
    loop = asyncio.get_running_loop()
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def is_mine(writer: asyncio.StreamWriter) -> bool:
    """Whether this user's process is at the other end of an accepted connection."""
    return win32.is_client_mine(writer.transport)


def start(command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, as far as a job of ours lets it. Raises OSError."""
    # Not DETACHED_PROCESS: engines of a process without a console would each open a window.
    flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP

    def started(flags: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=Path(sys.executable).anchor,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            creationflags=flags,
        )

    try:
        return started(flags | subprocess.CREATE_BREAKAWAY_FROM_JOB)
    except PermissionError:  # a job that lets nobody go
        return started(flags)


async def started(process: subprocess.Popen[bytes]) -> None:
    """The daemon that `process` was to start serves: it is `process` itself, which goes on."""


def leave() -> bool:
    """Go on in a process that is nobody's child; True in the one that is to end.

    There is no fork; `start` has done what can be done.
    """
    return False


def when_told_to_end(call: Callable[[], None]) -> None:
    """Have `call` called in the running loop when the process is told to end."""
    loop = asyncio.get_running_loop()

    def told(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(call)

    for number in (signal.SIGINT, signal.SIGBREAK):
        signal.signal(number, told)


def runtime_place() -> Place:
    """The place of this user's daemon; its folder is made where it is missing.

    Raises EngineError when the folder cannot be made, or Windows does not say who the user is.
    """
    local = os.environ.get("LOCALAPPDATA", "")
    if not os.path.isabs(local):
        raise EngineError("LOCALAPPDATA is not the path of a folder; set it to one.")
    folder = Path(local, "dg-lsp")
    try:
        folder.mkdir(exist_ok=True)
        sid = win32.user_sid()
    except OSError as error:
        raise EngineError(f"No engine can be shared in {folder} ({error.strerror}).") from None
    return Place(folder, pipe_name(sid))


def pipe_name(sid: str) -> str:
    """The pipe of a user, such as S-1-5-21-1-2-3-1001."""
    return rf"\\.\pipe\dg-lsp-{sid}"


def descriptor(sid: str) -> str:
    """Who may do what with a pipe, in SDDL: all (GA) to the user, nothing inherited (P)."""
    return f"D:P(A;;GA;;;{sid})"


def _another(place: Place) -> EngineError:
    return EngineError(f"Another user serves {place.address}; end that process.")


def _end(task: asyncio.Task[None]) -> object:
    return "cancelled" if task.cancelled() else task.exception()
