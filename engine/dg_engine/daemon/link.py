"""How a window reaches the daemon, which it starts where none serves; and DaemonEngine over it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dg_engine.choice import EngineChoice
from dg_engine.client import BACKOFF_SECONDS, LinkedEngine, OnStatus
from dg_engine.daemon.daemon import Limits, engine_command
from dg_engine.daemon.messages import (
    PROTOCOL,
    Ask,
    DaemonStatus,
    Focus,
    FromWindow,
    Hello,
    Quit,
    Refused,
    Welcome,
    packed,
    unpack_answer,
)
from dg_engine.daemon.place import Place
from dg_engine.daemon.system import runtime_place, system
from dg_engine.engine import EngineError
from dg_engine.links import Channel, ChildLink
from dg_engine.wire import HEADER, WireError, body_length

logger = logging.getLogger(__name__)

START_SECONDS = 10.0
"""How long a daemon may take to open its socket."""
MOST_STARTS = 8
"""Of daemons that make room for this window, each of which would be replaced by its like."""
GIVE_WAY_SECONDS = 0.5
"""How long a window that lost its daemon waits for somebody else's: it may have made room for that
of a newer window, which would have to replace one of ours again."""
ANSWER_SECONDS = 5.0
MOST_LOG_BYTES = 1_000_000
"""A longer log is begun anew when a daemon starts."""
_POLL_SECONDS = 0.05


class DaemonEngine(LinkedEngine):
    """The engine that all windows of this user share; see dg_engine.engine for the verbs."""

    def __init__(
        self,
        model: Path,
        *,
        version: str,
        name: str = "",
        threads: int | None = None,
        dtype: str | None = None,
        choice: EngineChoice | None = None,
        limits: Limits | None = None,
        on_status: OnStatus | None = None,
        command: Sequence[str] | None = None,
        backoff_seconds: Sequence[float] = BACKOFF_SECONDS,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            model: the checkpoint folder.
            version: of dg-lsp.
            name: what people call this window.
            threads: CPU threads of the engine, None for PyTorch's choice.
            dtype: "bfloat16" or "float32", None for what suits the machine.
            choice: which engine, PyTorch on this machine where left out.
            limits: of a daemon that is started here.
            on_status: told of every change of state, in the event loop.
            command: what to run instead of the daemon (tests).
            backoff_seconds: waits between the loss of a daemon and the next try.
        """
        folder = str(model.resolve())
        hello = Hello(
            *(PROTOCOL, version, os.getpid(), name, folder, threads, dtype),
            choice or EngineChoice(),
        )
        self._daemon = DaemonLink(hello, command or daemon_command(limits or Limits()))
        super().__init__(self._daemon, on_status=on_status, backoff_seconds=backoff_seconds)

    def set_focus(self, focused: bool | None) -> None:
        """Tell the daemon whether the user looks at this window, and any daemon after it.

        None where that is not known. A daemon from before there was a focus is not told, nor is an
        engine of the window's own, which has nobody else.
        """
        self._daemon.set_focus(focused)


class DaemonLink:
    """Opens channels to the daemon; to an engine of its own where no daemon will have it."""

    def __init__(self, hello: Hello, command: Sequence[str]) -> None:
        """`command` starts a daemon."""
        self._hello = hello
        self._command = command
        self._was_attached = False
        self._focused: bool | None = None
        self._told_of_focus: _Attached | None = None
        """The newest connection to a daemon that wants to know of the focus."""

    def set_focus(self, focused: bool | None) -> None:
        """Tell the daemon, and any after it, whether the user looks at this window."""
        if focused is not self._focused:
            self._focused = focused
            self._tell_focus()

    def _tell_focus(self) -> None:
        if self._told_of_focus is not None:
            self._told_of_focus.say(Focus(self._focused))

    async def open(self) -> Channel:
        """Connect, once a daemon serves."""
        try:
            place = runtime_place()
            return await self._attach(place)
        except EngineError as error:
            logger.warning("%s This window runs an engine of its own.", error)
        return await ChildLink(engine_command(self._hello)).open()

    async def _attach(self, place: Place) -> Channel:
        """A channel to the daemon; raises EngineError when there will be none."""
        began = time.monotonic()
        end = began + START_SECONDS
        gives_way_until = began + GIVE_WAY_SECONDS if self._was_attached else began
        started: subprocess.Popen[bytes] | None = None
        starts = 0
        while time.monotonic() < end:
            try:
                channel, answer = await spoken(place, self._hello)
            except ConnectionError:
                # None serves, or one has just ended. The process that is started ends once the
                # socket is open, also when another window's was faster.
                if started is not None and started.poll():
                    raise EngineError(f"The daemon ended at its start; see {place.log}.") from None
                gives_way = time.monotonic() < gives_way_until
                if not gives_way and (started is None or started.returncode == 0):
                    started = start_daemon(place, self._command)
                    starts += 1
                await asyncio.sleep(_POLL_SECONDS)
                continue
            match answer:
                case Welcome():
                    if started is not None:
                        await system.started(started)
                    self._was_attached = True
                    self._told_of_focus = channel if answer.hears_focus else None
                    if self._focused is not None:
                        self._tell_focus()
                    return channel
                case Refused(message, retry):
                    channel.cut()
                    if not retry:
                        raise EngineError(message)
                    if starts == MOST_STARTS:
                        raise EngineError("The daemon that is installed here is an older version.")
                    await asyncio.sleep(_POLL_SECONDS)
                case _:
                    channel.cut()
                    raise EngineError("The daemon gave a wrong answer; end it and try again.")
        raise EngineError(f"No daemon opened {place.address} in {START_SECONDS:g} s; see its log.")


async def spoken(
    place: Place, message: FromWindow
) -> tuple[_Attached, Welcome | Refused | DaemonStatus]:
    """Say the first message to the daemon, and hear its answer.

    Raises ConnectionError where no daemon serves, EngineError when what serves is none of ours.
    """
    try:
        reader, writer = await asyncio.wait_for(system.connect(place), ANSWER_SECONDS)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(str(error)) from None
    channel = _Attached(reader, writer)
    try:
        writer.write(packed(message))
        async with asyncio.timeout(ANSWER_SECONDS):
            header = await reader.readexactly(HEADER.size)
            return channel, unpack_answer(await reader.readexactly(body_length(header)))
    except (asyncio.IncompleteReadError, OSError, TimeoutError) as error:
        channel.cut()
        raise ConnectionError(str(error)) from None
    except WireError as error:
        channel.cut()
        raise EngineError(f"{place.address} speaks another language ({error}).") from None


async def ask(place: Place) -> DaemonStatus | None:
    """How the daemon is; None where none serves."""
    try:
        channel, answer = await spoken(place, Ask())
    except ConnectionError:
        return None
    channel.cut()
    return answer if isinstance(answer, DaemonStatus) else None


async def quit_daemon(place: Place) -> bool:
    """Tell the daemon to end; False where none serves."""
    try:
        channel, _ = await spoken(place, Ask())
    except ConnectionError:
        return False
    with contextlib.suppress(OSError):
        channel.writer.write(packed(Quit()))
        await channel.writer.drain()
    await channel.end(ANSWER_SECONDS)
    return True


def daemon_command(limits: Limits) -> list[str]:
    """The command of the daemon's process."""
    command = [sys.executable, "-P", "-m", "dg_engine.daemon"]
    command += ["--unload-after", f"{limits.unload_after_s:g}"]
    return [*command, "--exit-after", f"{limits.exit_after_s:g}"]


def start_daemon(place: Place, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start the daemon's process, which outlives this one. Raises EngineError."""
    try:
        with open(place.log, "ab", opener=_private) as log:
            if log.tell() > MOST_LOG_BYTES:
                log.seek(log.truncate(0))  # what is appended goes there by itself but on Windows
            return system.start(command, log)
    except OSError as error:
        raise EngineError(f"The daemon cannot be started ({error.strerror}).") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _Attached:
    """An open connection to the daemon."""

    takes_jobs = True
    pid = None

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._note = ""

    def say(self, message: FromWindow) -> None:
        """Send a message; nothing happens where the daemon has gone."""
        if not self.writer.is_closing():
            with contextlib.suppress(OSError, RuntimeError):
                self.writer.write(packed(message))

    def note(self, line: str) -> None:
        self._note = line

    def cut(self) -> None:
        self.writer.transport.abort()

    async def end(self, seconds: float) -> None:
        self.writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self.writer.wait_closed(), seconds)
        self.cut()

    async def why(self) -> str:
        self.cut()
        said = f" ({self._note})" if self._note else ""
        return f"The shared engine has gone{said}."
