"""The daemon on Linux and macOS: a Unix socket that a lock guards, a fork, signals."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError("Windows has dg_engine.daemon.windows.")

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import IO

from dg_engine.daemon.credentials import peer_uid
from dg_engine.daemon.place import Place
from dg_engine.engine import EngineError

logger = logging.getLogger(__name__)

_MOST_PATH_BYTES = 100
"""Paths of sockets end at 104 bytes on macOS and 108 on Linux."""

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Endpoint:
    """The socket of one daemon, and the lock that makes it the only one of its place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock: IO[str] | None = None
        self._listener: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._serve: Serve | None = None
        self._inode = 0

    def open(self) -> bool:
        """Take the lock and open the socket; False when another daemon has them.

        Raises OSError. The process may fork between this and `listen`.
        """
        self._lock = _locked(self._place.lock)
        if self._lock is None:
            return False
        self._listener = self._bind()
        return True

    async def listen(self, serve: Serve) -> None:
        """Hand every connection to `serve`."""
        if self._listener is None:
            raise AssertionError("listen follows open")
        self._serve = serve
        self._server = await asyncio.start_unix_server(serve, sock=self._listener)

    async def mend(self) -> bool:
        """Make the socket again where it was removed; False when another daemon may serve."""
        if self._lock is None or not _is_at(self._lock, self._place.lock):
            logger.warning("The lock was removed; another daemon may serve.")
            return False
        if self._found() != self._inode and self._serve is not None:
            logger.warning("The socket was removed; it is made again.")
            if self._server is not None:
                self._server.close()
            try:
                self._listener = self._bind()
                await self.listen(self._serve)
            except OSError as error:
                logger.error("The socket cannot be made (%s).", error.strerror)
        return True

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            if self._found() == self._inode:
                self._place.socket.unlink()
        if self._server is not None:
            self._server.close()

    def release(self) -> None:
        """Let another daemon serve."""
        if self._lock is not None:
            self._lock.close()

    def _bind(self) -> socket.socket:
        """Open the socket under a name of its own, then put it in place at once."""
        made = self._place.socket.with_suffix(".new")
        made.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old = os.umask(0o177)
        try:
            listener.bind(str(made))
        finally:
            os.umask(old)
        listener.listen(socket.SOMAXCONN)
        self._inode = made.stat().st_ino
        made.rename(self._place.socket)
        return listener

    def _found(self) -> int:
        """The inode of what is in the socket's place; 0 where nothing is."""
        with contextlib.suppress(OSError):
            return self._place.socket.stat().st_ino
        return 0


async def connect(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the daemon.

    Raises OSError where none serves, EngineError where another user does.
    """
    reader, writer = await asyncio.open_unix_connection(str(place.socket))
    if not is_mine(writer):
        writer.transport.abort()
        raise EngineError(f"Another user serves {place.socket}; remove it.")
    return reader, writer


def is_mine(writer: asyncio.StreamWriter) -> bool:
    """Whether this user's process is at the other end, as far as the system tells."""
    uid = peer_uid(writer.get_extra_info("socket"))
    return uid is None or uid == os.getuid()


def start(command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one. Raises OSError."""
    return subprocess.Popen(
        command,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        start_new_session=True,
    )


async def started(process: subprocess.Popen[bytes]) -> None:
    """The daemon that `process` was to start serves: wait for its end, which comes then."""
    await asyncio.to_thread(process.wait)


def leave() -> bool:
    """Go on in a process that is nobody's child; True in the one that is to end."""
    return os.fork() != 0


def when_told_to_end(call: Callable[[], None]) -> None:
    """Have `call` called in the running loop when the process is told to end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, call)


def runtime_place() -> Place:
    """The place of this user's daemon; its folder is made where it is missing.

    Raises EngineError when the folder cannot be made or is not the user's alone.
    """
    folder = _folder(os.getuid())
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise EngineError(f"The folder {folder} cannot be made ({error.strerror}).") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise EngineError(f"{folder} is not a folder of yours; remove it.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise EngineError(f"Others may enter {folder}; run: chmod 700 {folder}")
    return Place(folder)


def _folder(user: int) -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        folder = Path(runtime, "dg-lsp")
        if len(bytes(Place(folder).socket)) <= _MOST_PATH_BYTES:
            return folder
    return Path(tempfile.gettempdir(), f"dg-lsp-{user}")


def _locked(path: Path) -> IO[str] | None:
    """The lock, held until it is closed; None when another process has it."""
    lock = open(path, "w", encoding="ascii")  # noqa: SIM115 - held as long as the daemon lives
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


def _is_at(file: IO[str], path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    return False
