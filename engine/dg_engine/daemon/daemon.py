"""The daemon: windows come in, share the engines, and when all are gone it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dg_engine.client import EngineClient, LinkedEngine, OnStatus
from dg_engine.daemon.messages import (
    PROTOCOL,
    Ask,
    DaemonStatus,
    Focus,
    Hello,
    Quit,
    Refused,
    Welcome,
)
from dg_engine.daemon.place import Place
from dg_engine.daemon.shared import SharedEngine, resident_bytes
from dg_engine.daemon.system import system
from dg_engine.daemon.window import Window
from dg_engine.links import child_command
from dg_engine.wire import Cancel, Close, Ping, Pong, Submit, WireError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often the daemon sees to its endpoint and whether it is still wanted."""
LAST_WORDS_SECONDS = 1.0
"""How long a daemon that ends waits for those that it turned away to read why."""
MOST_WINDOWS = 256


class Limits(NamedTuple):
    """How long the daemon keeps what nobody uses, in seconds."""

    unload_after_s: float = 1800.0
    exit_after_s: float = 60.0


Starter = Callable[[Hello, OnStatus], LinkedEngine]


def engine_child(hello: Hello, on_status: OnStatus) -> LinkedEngine:
    """The engine as a child of the daemon."""
    return EngineClient(Path(hello.model), command=engine_command(hello), on_status=on_status)


def engine_command(hello: Hello) -> list[str]:
    """The command of the engine's process, as a child of this one."""
    command = child_command(Path(hello.model), hello.threads, hello.dtype)
    return [*command, *hello.choice.arguments()]


class Daemon:
    """Everything that runs in the process."""

    def __init__(
        self, place: Place, version: str, limits: Limits, start: Starter = engine_child
    ) -> None:
        self._endpoint = system.Endpoint(place)
        self._version = version
        self._limits = limits
        self._start = start
        self._engines: dict[tuple[object, ...], SharedEngine] = {}
        self._closing: list[asyncio.Future[None]] = []
        self._windows: dict[Window, SharedEngine] = {}
        self._connections: dict[asyncio.Task[None], Window] = {}
        """Whatever is connected, also what only asks or was turned away."""
        self._began = self._empty_since = time.monotonic()
        self._over = asyncio.Event()

    def open(self) -> bool:
        """Open the endpoint; False when another daemon serves already.

        Raises OSError. The process may fork between this and `run`.
        """
        return self._endpoint.open()

    async def run(self) -> None:
        """Serve until nobody needs it."""
        try:
            await self._endpoint.listen(self._serve)
            system.when_told_to_end(self._over.set)
            logger.info("Version %s serves.", self._version)
            watching = asyncio.create_task(self._watch())
            await self._over.wait()
            watching.cancel()
            await self._close()
        finally:
            self._endpoint.release()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._let_go(self._limits.exit_after_s)
            if self._windows:
                self._empty_since = time.monotonic()
            elif time.monotonic() - self._empty_since >= self._limits.exit_after_s:
                self._over.set()
            if not await self._endpoint.mend():
                self._over.set()

    async def _close(self) -> None:
        self._endpoint.close()
        for window in self._connections.values():
            if not window.is_ending:
                window.cut()
        if self._connections:  # the last words of the others
            await asyncio.wait(self._connections, timeout=LAST_WORDS_SECONDS)
        await asyncio.gather(*self._closing, *(e.close() for e in self._engines.values()))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first message to its end."""
        if not system.is_mine(writer):
            logger.warning("Another user's process was turned away.")
            writer.transport.abort()
            return
        window = Window(reader, writer)
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("a connection is served by a task")
        self._connections[task] = window
        try:
            await self._talk(window)
        except WireError as error:
            logger.warning("A window was let go: %s", error)
        finally:
            engine = self._windows.pop(window, None)
            if engine is not None:
                engine.leave(window)
            window.cut()
            del self._connections[task]

    async def _talk(self, window: Window) -> None:
        async for message in window.messages():
            engine = self._windows.get(window)
            match message:
                case Hello() if engine is None:
                    if not self._greet(window, message):
                        await window.end()
                        return
                case Ask() if engine is None:
                    window.put(self._status())
                case Quit() if engine is None:
                    self._over.set()
                case Ping(count):
                    window.put(Pong(count, 0))
                case Close():
                    return
                case Submit() | Cancel() | Focus() if engine is not None:
                    _hand_over(engine, window, message)
                case _:
                    raise WireError("a message out of turn")

    def _greet(self, window: Window, hello: Hello) -> bool:
        """Attach a window, or say why not."""
        if hello.protocol != PROTOCOL:
            newer = "window's" if hello.protocol < PROTOCOL else "daemon's"
            window.put(
                Refused(
                    f"The {newer} version is too old for the other; restart what is older.",
                    retry=hello.protocol > PROTOCOL and self._may_be_replaced(),
                )
            )
            return False
        if _is_newer(hello.version, self._version) and self._may_be_replaced():
            window.put(Refused(f"Version {self._version} makes room.", retry=True))
            return False
        if len(self._windows) >= MOST_WINDOWS:
            window.put(Refused(f"{MOST_WINDOWS} windows are attached; close some.", retry=False))
            return False
        window.name, window.pid = hello.name[:80], hello.pid
        key = hello.model, hello.threads, hello.dtype, hello.choice
        engine = self._engines.get(key)
        if engine is None:
            # A window that changed its model needs the memory of the one before.
            self._let_go(unused_for_s=0.0)
            engine = self._engines[key] = SharedEngine(
                hello.model,
                lambda on_status: self._start(hello, on_status),
                self._limits.unload_after_s,
            )
        self._windows[window] = engine
        window.put(Welcome(PROTOCOL, self._version, os.getpid(), hears_focus=True))
        engine.attach(window)
        return True

    def _let_go(self, unused_for_s: float) -> None:
        """Close the engines that no window has used for so long."""
        for key, engine in list(self._engines.items()):
            if engine.unused_s >= unused_for_s and not engine.windows:
                del self._engines[key]
                self._closing.append(asyncio.ensure_future(engine.close()))
        self._closing = [task for task in self._closing if not task.done()]

    def _may_be_replaced(self) -> bool:
        """Whether a newer daemon may take over; then this one ends."""
        if not all(engine.is_idle for engine in self._engines.values()):
            return False
        self._over.set()
        return True

    def _status(self) -> DaemonStatus:
        return DaemonStatus(
            version=self._version,
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._began, 1),
            memory_bytes=resident_bytes(os.getpid()),
            engines=[engine.report() for engine in self._engines.values()],
        )


def _hand_over(engine: SharedEngine, window: Window, message: Submit | Cancel | Focus) -> None:
    match message:
        case Submit(job):
            engine.submit(window, job)
        case Cancel(job_id):
            engine.cancel(window, job_id)
        case Focus(focused):
            engine.focus(window, focused)


def _is_newer(version: str, than: str) -> bool:
    return _numbers(version) > _numbers(than)


def _numbers(version: str) -> tuple[int, ...]:
    """The release's numbers; what comes behind them does not count."""
    found = re.match(r"\d{1,9}(\.\d{1,9})*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
