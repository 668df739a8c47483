"""A daemon of its own for each test, with windows and an engine that has no model."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from dg_engine.daemon.link import DaemonEngine, ask
from dg_engine.daemon.messages import DaemonStatus, FromWindow, packed
from dg_engine.daemon.place import Place
from dg_engine.daemon.system import runtime_place
from dg_engine.engine import EngineStatus
from dg_engine.job import CanvasJob, Frame

DAEMON = Path(__file__).with_name("scripted_daemon.py")
SOON = 15.0
"""Seconds for what processes do on a busy machine."""


def job(name: str = "a", ms: int = 5, steps: int = 3, **fields: Any) -> CanvasJob:
    """A job whose right answer is its canvas plus one; see tests.scripted_child."""
    values: dict[str, Any] = {"canvas": [len(name)], "roles": b"\0", **fields}
    return CanvasJob(id=name, prompt=[ms, 1, 2, 3], max_steps=steps, **values)


async def frames_of(engine: DaemonEngine, one: CanvasJob) -> list[Frame]:
    """All frames of a job, which must end soon."""
    async with asyncio.timeout(SOON):
        return [frame async for frame in engine.submit(one)]


async def until(condition: Callable[[], object]) -> float:
    """Wait for what other processes do; how long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < SOON, "it did not happen in time"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


class World:
    """The daemon's place and the windows on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.windows: list[DaemonEngine] = []
        self.told: dict[str, list[EngineStatus]] = {}
        self.began: list[asyncio.subprocess.Process] = []

    @property
    def place(self) -> Place:
        return runtime_place()

    def command(self, *options: str, version: str = "1.0") -> list[str]:
        """Starts a daemon."""
        return [sys.executable, "-P", str(DAEMON), "--version", version, *options]

    async def window(
        self,
        name: str = "a",
        *options: str,
        model: str = "scripted",
        version: str = "1.0",
        installed: str | None = None,
        ready: bool = True,
    ) -> DaemonEngine:
        """A window that is attached, with its model; daemons that it starts are of `installed`."""
        self.told[name] = []
        engine = DaemonEngine(
            self.folder / model,
            version=version,
            name=name,
            command=self.command(*options, version=installed or version),
            on_status=self.told[name].append,
            backoff_seconds=(0.05,),
        )
        self.windows.append(engine)
        await engine.start()
        if ready:
            async with asyncio.timeout(SOON):
                await engine.info()
        return engine

    async def status(self) -> DaemonStatus:
        """What the daemon says of itself; it must serve."""
        status = await ask(self.place)
        assert status is not None
        return status

    async def pid(self) -> int:
        """Of the daemon."""
        return (await self.status()).pid

    async def engine_pid(self) -> int:
        """Of the only engine, which is loaded."""
        engines = (await self.status()).engines
        assert len(engines) == 1
        assert engines[0].pid is not None
        return engines[0].pid

    async def engine_begins(self) -> None:
        """Wait until the only engine's process exists; it may load for long yet."""
        began = time.monotonic()
        while True:
            status = await ask(self.place)
            if status is not None and status.engines and status.engines[0].pid is not None:
                return
            assert time.monotonic() - began < SOON, "no engine was started in time"
            await asyncio.sleep(0.01)

    async def heard(self, name: str = "a") -> int:
        """How many jobs of a window the daemon has taken: those that wait, run and are done."""
        windows = [one for engine in (await self.status()).engines for one in engine.windows]
        return sum(w.waiting + w.running + w.done for w in windows if w.name == name)

    async def sees(self, name: str) -> None:
        """Wait until the daemon has a window of this name."""
        began = time.monotonic()
        while name not in [w.name for e in (await self.status()).engines for w in e.windows]:
            assert time.monotonic() - began < SOON, "the window did not come in time"
            await asyncio.sleep(0.01)

    async def hears(self, count: int, name: str = "a") -> None:
        """Wait until the daemon has taken so many jobs of a window."""
        began = time.monotonic()
        while await self.heard(name) < count:
            assert time.monotonic() - began < SOON, "the jobs did not arrive in time"
            await asyncio.sleep(0.01)

    async def connection(
        self, *messages: FromWindow | bytes
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A raw connection on which something was said."""
        reader, writer = await asyncio.open_unix_connection(str(self.place.socket))
        for message in messages:
            writer.write(message if isinstance(message, bytes) else packed(message))
        await writer.drain()
        return reader, writer

    async def works(self, engine: DaemonEngine, name: str = "works") -> float:
        """Seconds until a window gets a right answer, whatever it takes."""
        began = time.monotonic()
        count = 0
        while True:
            count += 1
            one = job(f"{name}{count}")
            last = (await frames_of(engine, one))[-1]
            assert last.job == one.id
            assert last.done is not None
            if last.ids == [[one.canvas[0] + 1]]:
                return time.monotonic() - began
            assert time.monotonic() - began < SOON, last.done.message
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        """End all that was begun."""
        for engine in self.windows:
            await engine.close()
        status = None
        with contextlib.suppress(Exception):
            status = await ask(self.place)
        if status is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(status.pid, signal.SIGCONT)
                os.kill(status.pid, signal.SIGKILL)
        for process in psutil.process_iter(["cmdline", "environ"]):
            environ = process.info["environ"] or {}
            if environ.get("XDG_RUNTIME_DIR") == str(self.folder) and process.pid != os.getpid():
                with contextlib.suppress(psutil.Error):
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest_asyncio.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A place where no daemon serves yet; sockets' paths are short, so not below tmp_path."""
    made = World(Path(tempfile.mkdtemp(prefix="dg-")))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(made.folder))
    yield made
    await made.close()
