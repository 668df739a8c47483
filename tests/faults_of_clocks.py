"""Faults: the machine's clock is set by hours, and files are of another time."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dg_engine.engine import EngineState
from dg_engine.job import DoneKind, Priority

from tests.checkpoints import write_checkpoint
from tests.daemon_world import SOON, World, frames_of, job, until
from tests.fault_table import NOTHING, fault, gone, last_of
from tests.real_server import LOAD_SECONDS, SERVE, normals, settings_for
from tests.server_fixtures import CURSOR, TEXT
from tests.wire_client import WireClient

FOLDER = Path(__file__).with_name("set_clock")
HOURS = 3600.0
FAR_SECONDS = 10 * HOURS
CLOSE_SECONDS = 600.0
"""No two readings of one clock in a test lie further apart."""
LONG_AGO, FAR_AHEAD = 100_000_000.0, 4_000_000_000.0
"""1973 and 2096, as files may say of themselves."""


class Clock:
    """Of all processes that are started meanwhile; see tests/set_clock/sitecustomize.py."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def set(self, seconds: float) -> None:
        """Set it by so much from what it really is, in one instant."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:g}", "ascii")
        new.replace(self._file)

    def was_read_by(self, pid: int, seconds: float) -> bool:
        """Whether a process read the clock when it was set so."""
        read = Path(f"{self._file}.read")
        return read.exists() and f"{pid} {seconds:g}" in read.read_text("ascii").splitlines()


@contextlib.contextmanager
def clock_of(w: World) -> Iterator[Clock]:
    """A clock that can be set, for this process too."""
    clock = Clock(w.folder / "clock")
    began = time.time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DG_LSP_TEST_CLOCK", str(w.folder / "clock"))
        patch.setenv("PYTHONPATH", str(FOLDER), prepend=os.pathsep)
        clock.set(FAR_SECONDS)
        code = "import datetime, time; print(time.time(), datetime.datetime.now().timestamp())"
        command = [sys.executable, "-P", "-c", code]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
        assert all(float(at) > began + FAR_SECONDS - CLOSE_SECONDS for at in said.stdout.split())
        clock.set(0)
        real = time.time
        patch.setattr(time, "time", lambda: real() + float((w.folder / "clock").read_text("ascii")))
        yield clock


def is_set(seconds: float, how: str) -> None:
    @fault(f"the clock is set ten hours {how} while jobs run", NOTHING)
    async def _(w: World) -> float:
        with clock_of(w) as clock:
            window = await w.window("a", "--unload-after", "600", "--exit-after", "600")
            await w.window("quiet")  # what it hears are signs of life alone
            daemon, engine = await w.pid(), await w.engine_pid()
            edit = job("long", 10, 300, priority=Priority.EDIT)
            running = asyncio.ensure_future(frames_of(window, edit))
            await w.hears(1)
            clock.set(seconds)
            lasted = await w.works(window)
            reader, _ = await w.connection(b"\xff\xff\xff\xff")  # the daemon logs it, with its time
            assert await asyncio.wait_for(reader.read(), SOON) == b""
            await until(lambda: clock.was_read_by(daemon, seconds))
            await w.works(await w.window("new"), "n")
            # It takes 3 s, in which everybody has looked at a clock.
            assert last_of(await running).kind is DoneKind.MAX_STEPS
            status = await w.status()
            assert (status.pid, await w.engine_pid()) == (daemon, engine)
            assert 0 < status.uptime_s < CLOSE_SECONDS
            told = {status.state for name in ("a", "quiet") for status in w.told[name]}
            assert told <= {EngineState.LOADING, EngineState.READY}
        return lasted


is_set(FAR_SECONDS, "ahead")
is_set(-FAR_SECONDS, "back")


@fault("the clock is set back before an engine that nobody uses is let go", NOTHING)
async def _(w: World) -> float:
    with clock_of(w) as clock:
        window = await w.window("a", "--unload-after", "3", "--exit-after", "1")
        daemon, engine = await w.pid(), await w.engine_pid()
        clock.set(-FAR_SECONDS)
        await until(lambda: gone(engine))  # in its time, not ten hours later
        lasted = await w.works(window)
        assert await w.pid() == daemon
        await window.close()
        await until(lambda: gone(daemon))
    return lasted


@fault(
    "the clock is set ahead and back under an editor's server; files are of 1973 and 2096", NOTHING
)
async def _(w: World) -> float:
    """The real server, daemon and engine."""
    model, project = w.folder / "model", w.folder / "project"
    model.mkdir()
    project.mkdir()
    write_checkpoint(model, canvas_length=64)
    dated(model, FAR_AHEAD)
    document = (project / "a.py").as_uri()
    with clock_of(w) as clock:
        client = await WireClient.run("-c", SERVE)
        try:
            await client.initialize(
                rootUri=project.as_uri(), initializationOptions=settings_for(model)
            )
            client.open(TEXT, document)
            await client.until(lambda: normals(client) > 0, LOAD_SECONDS)
            longest = 0.0
            for seconds, at in ((FAR_SECONDS, FAR_AHEAD), (-FAR_SECONDS, LONG_AGO)):
                clock.set(seconds)
                began = time.monotonic()
                assert await why_silent(client, document) != "excluded"
                longest = max(longest, time.monotonic() - began)
                settings = project / ".dg-lsp.toml"
                for text, excluded in (('exclude = ["*.py"]\n', True), ("# nothing\n", False)):
                    settings.write_text(text)
                    os.utime(settings, (at, at))
                    began = time.monotonic()
                    while (await why_silent(client, document) == "excluded") is not excluded:
                        assert time.monotonic() - began < SOON, "the settings were not seen"
                dated(model, at)
                await starts_again(w, client, clock, seconds)
                assert await why_silent(client, document) != "excluded"
        finally:
            await client.close()
    return longest


def dated(folder: Path, at: float) -> None:
    """Have the files of a folder be of a time."""
    for path in folder.iterdir():
        os.utime(path, (at, at))


async def why_silent(client: WireClient, document: str) -> str:
    """Ask for a suggestion, which is answered; why it was with none, if so."""
    answer = await client.answer(client.ask_completion(*CURSOR, kind=1, uri=document))
    assert "items" in answer["result"]
    last = (await client.request("dg/status", None))["result"]["lastReason"]
    return last["why"] if last else ""


async def starts_again(w: World, client: WireClient, clock: Clock, seconds: float) -> None:
    """The daemon is killed; the editor is told when it is tried again, by the clock as set."""
    before, told = normals(client), len(client.said("dg/status"))
    os.kill(await w.pid(), signal.SIGKILL)
    await client.until(lambda: normals(client) > before, LOAD_SECONDS)
    (when, *_) = [s["retryAt"] for s in client.said("dg/status")[told:] if s["retryAt"]]
    at = datetime.datetime.fromisoformat(when).timestamp()
    assert abs(at - time.time()) < CLOSE_SECONDS
    assert clock.was_read_by(client.process.pid, seconds)
