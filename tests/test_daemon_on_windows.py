"""The daemon as it is on Windows, over a stand-in for the system's calls."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from dg_engine.daemon import daemon as daemon_module
from dg_engine.daemon import link, posix
from dg_engine.daemon import system as system_module
from dg_engine.daemon.daemon import Daemon, Limits
from dg_engine.daemon.link import DaemonEngine, ask, quit_daemon
from dg_engine.daemon.messages import DaemonStatus
from dg_engine.daemon.place import WINDOWS_VARIABLE, Place, is_offered
from dg_engine.engine import EngineError, EngineState
from dg_lsp import engine_host
from dg_lsp.cli import doctor, serve
from dg_lsp.cli.errors import CliError
from dg_lsp.configuration import Configuration

from tests import scripted_daemon
from tests.daemon_world import SOON, frames_of, job, until
from tests.fault_table import own_engine
from tests.windows_stand_in import SID, Pipe, Pipes, Running, loaded, win_error

NAME = rf"\\.\pipe\dg-lsp-{SID}"


@pytest.fixture
def pipes() -> Pipes:
    return Pipes()


@pytest.fixture
def windows(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module for Windows, over those pipes."""
    monkeypatch.setitem(sys.modules, "dg_engine.daemon.win32", pipes)
    return loaded(monkeypatch, "windows")


class Windows:
    """Windows of editors on Windows, and the daemon that they start in this process."""

    def __init__(self, folder: Path, pipes: Pipes) -> None:
        self.place = Place(folder, NAME)
        self.pipes = pipes
        self.daemons: list[Running] = []
        self.all: list[DaemonEngine] = []
        self.limits = Limits()

    def daemon(self) -> Daemon:
        return Daemon(self.place, "1.0", self.limits, scripted_daemon.start)

    def start(self, command: Sequence[str], log: object) -> Running:
        self.daemons.append(Running(self.daemon()))
        return self.daemons[-1]

    async def open(self, name: str) -> DaemonEngine:
        window = DaemonEngine(
            self.place.folder / "scripted",
            version="1.0",
            name=name,
            backoff_seconds=(0.05,),
        )
        self.all.append(window)
        await window.start()
        async with asyncio.timeout(SOON):
            await window.info()
        return window

    def gone(self) -> bool:
        return all(daemon.poll() == 0 for daemon in self.daemons)

    async def until_gone(self) -> None:
        await until(self.gone)

    async def works(self, window: DaemonEngine) -> bool:
        one = job("works")
        return (await frames_of(window, one))[-1].ids == [[one.canvas[0] + 1]]


@pytest_asyncio.fixture
async def world(
    windows: ModuleType, pipes: Pipes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Windows]:
    made = Windows(tmp_path, pipes)
    monkeypatch.setattr(windows, "start", made.start)
    monkeypatch.setattr(windows, "when_told_to_end", lambda call: None)
    monkeypatch.setattr(link, "system", windows)
    monkeypatch.setattr(link, "runtime_place", lambda: made.place)
    monkeypatch.setattr(daemon_module, "system", windows)
    yield made
    for window in made.all:
        await window.close()
    pipes.client_is_mine = True
    if made.daemons and not made.gone():
        assert await quit_daemon(made.place)
        await made.until_gone()
    for pipe in pipes.all:
        if pipe.transport is None:
            pipe.close()


@pytest.mark.asyncio
async def test_windows_share_a_daemon_that_the_first_starts(world: Windows) -> None:
    first, second = await world.open("first"), await world.open("second")
    assert await world.works(first)
    assert await world.works(second)
    status = await ask(world.place)
    assert status is not None
    assert [w.name for engine in status.engines for w in engine.windows] == ["first", "second"]
    assert len(world.daemons) == 1
    assert world.daemons[0].poll() is None  # it is the process that was started, and stays


@pytest.mark.asyncio
async def test_windows_that_open_in_the_same_instant_share_one(world: Windows) -> None:
    opened = await asyncio.gather(*(world.open(f"{number}") for number in range(8)))
    assert all([await world.works(window) for window in opened])
    assert [daemon.poll() for daemon in world.daemons].count(None) == 1


@pytest.mark.asyncio
async def test_the_pipe_is_its_users_alone_and_there_is_always_one_to_open(world: Windows) -> None:
    await world.open("a")
    made = world.pipes.named(NAME)
    assert {pipe.security for pipe in made} == {f"D:P(A;;GA;;;{SID})"}
    # One that is waited for, and one for whoever comes before the next is.
    assert [pipe.peer is None for pipe in made].count(True) == 2


@pytest.mark.asyncio
async def test_the_first_pipe_is_the_lock_until_the_last_connection_is_closed(
    world: Windows,
) -> None:
    window = await world.open("a")
    assert not world.daemon().open()
    assert await quit_daemon(world.place)
    await window.close()
    await world.until_gone()
    assert world.pipes.named(NAME) == []
    later = world.daemon()
    assert later.open()


@pytest.mark.asyncio
async def test_a_window_goes_on_with_the_next_daemon(world: Windows) -> None:
    window = await world.open("a")
    assert await quit_daemon(world.place)
    await world.until_gone()
    await until(lambda: len(world.daemons) == 2 and window.status.state is EngineState.READY)
    assert await world.works(window)


@pytest.mark.asyncio
async def test_the_daemon_ends_some_time_after_the_last_window(
    world: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "LOOK_SECONDS", 0.02)
    world.limits = Limits(exit_after_s=0.2)
    window = await world.open("a")
    await window.close()
    await world.until_gone()
    assert await ask(world.place) is None
    assert not await quit_daemon(world.place)


@pytest.mark.asyncio
async def test_a_client_that_has_gone_again_is_no_trouble(
    world: Windows, caplog: pytest.LogCaptureFixture
) -> None:
    world.pipes.failing = [win_error(109)]
    assert await world.works(await world.open("a"))
    assert world.pipes.all[0].closed
    assert "it is tried again" not in caplog.text


@pytest.mark.asyncio
async def test_pipes_that_cannot_be_accepted_are_tried_again(
    world: Windows, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(daemon_module, "LOOK_SECONDS", 0.02)
    await world.open("a")
    (waits,) = [p for p in world.pipes.named(NAME) if p.peer is None][:1]
    world.pipes.failing = [win_error(8)]
    for _ in range(2):  # one that is accepted, and one that cannot be
        assert await ask(world.place) is not None
    assert waits.peer is not None
    assert await world.works(await world.open("b"))
    assert "error 8); it is tried again" in caplog.text


@pytest.mark.asyncio
async def test_nothing_is_said_to_another_users_server(
    world: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = world.pipes.make_pipe(NAME, "theirs", first=True)
    world.pipes.server_is_mine = False
    with pytest.raises(EngineError, match="Another user serves"):
        await ask(world.place)
    assert theirs.peer is not None
    assert await asyncio.get_running_loop().sock_recv(unblocked(theirs), 10) == b""
    again = world.pipes.make_pipe(NAME, "theirs", first=False)
    own_engine(monkeypatch)
    assert await world.works(await world.open("a"))
    assert await asyncio.get_running_loop().sock_recv(unblocked(again), 10) == b""
    assert world.daemons == []


def unblocked(pipe: Pipe) -> Any:
    """The server's end of a pipe, once it is opened."""
    assert pipe.peer is not None
    pipe.peer.setblocking(False)
    return pipe.peer


@pytest.mark.asyncio
async def test_a_pipe_that_may_not_be_opened_is_another_users(
    world: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(name: str, protocol: object) -> None:
        raise win_error(5)

    monkeypatch.setattr(world.pipes, "connect", refused)
    with pytest.raises(EngineError, match="Another user serves"):
        await ask(world.place)


@pytest.mark.asyncio
async def test_another_users_window_is_turned_away(world: Windows) -> None:
    window = await world.open("a")
    world.pipes.client_is_mine = False
    assert await ask(world.place) is None
    world.pipes.client_is_mine = True
    assert await world.works(window)


@pytest.mark.parametrize("code", [5, 231])
def test_a_name_that_is_taken_is_another_daemons(
    windows: ModuleType, pipes: Pipes, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(pipes, "make_pipe", failing(code))
    assert not windows.Endpoint(Place(Path(), NAME)).open()


def test_what_else_goes_wrong_with_the_first_pipe_is_told(
    windows: ModuleType, pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "make_pipe", failing(8))
    with pytest.raises(OSError, match="error 8"):
        windows.Endpoint(Place(Path(), NAME)).open()


def failing(code: int) -> Callable[..., None]:
    def fails(*_: object, **__: object) -> None:
        raise win_error(code)

    return fails


def test_its_place_is_the_users_folder_for_such_things(
    windows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    for _ in range(2):
        found = windows.runtime_place()
        assert (found.address, found.log) == (NAME, tmp_path / "dg-lsp" / "engine.log")
        assert found.folder.is_dir()
    chosen = loaded(monkeypatch, "system")
    assert chosen.runtime_place().address == NAME


def test_a_place_that_cannot_be_is_a_sentence(
    windows: ModuleType, pipes: Pipes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in ("", "relative"):
        monkeypatch.setenv("LOCALAPPDATA", wrong)
        with pytest.raises(EngineError, match="LOCALAPPDATA is not"):
            windows.runtime_place()
    (tmp_path / "dg-lsp").write_text("a file")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    with pytest.raises(EngineError, match="No engine can be shared in"):
        windows.runtime_place()
    (tmp_path / "dg-lsp").unlink()

    monkeypatch.setattr(pipes, "user_sid", failing(5))
    with pytest.raises(EngineError, match="No engine can be shared in"):
        windows.runtime_place()


@pytest.mark.parametrize("job_lets_go", [True, False])
def test_a_daemon_is_started_without_a_window_and_out_of_our_job_where_that_is_allowed(
    windows: ModuleType, monkeypatch: pytest.MonkeyPatch, job_lets_go: bool
) -> None:
    no_window, new_group, breakaway = 0x08000000, 0x200, 0x01000000
    monkeypatch.setattr(subprocess, "CREATE_NO_WINDOW", no_window, raising=False)
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", new_group, raising=False)
    monkeypatch.setattr(subprocess, "CREATE_BREAKAWAY_FROM_JOB", breakaway, raising=False)
    tried: list[int] = []

    def popen(command: object, *, creationflags: int, **more: Any) -> str:
        tried.append(creationflags)
        if creationflags & breakaway and not job_lets_go:
            raise win_error(5)
        return "started"

    monkeypatch.setattr(subprocess, "Popen", popen)
    with tempfile.TemporaryFile() as log:
        assert windows.start(["daemon"], log) == "started"
    both = no_window | new_group
    assert tried == ([both | breakaway] if job_lets_go else [both | breakaway, both])


@pytest.mark.asyncio
async def test_the_console_ends_it(windows: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "SIGBREAK", signal.SIGUSR1, raising=False)
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGUSR1)]
    try:
        for number, _ in before:
            told = asyncio.Event()
            windows.when_told_to_end(told.set)
            os.kill(os.getpid(), number)
            await asyncio.wait_for(told.wait(), SOON)
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def test_nothing_is_forked_or_waited_for(windows: ModuleType) -> None:
    assert windows.leave() is False
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        asyncio.run(windows.started(process))
        assert process.poll() is None


def test_the_module_is_chosen_by_the_system(
    windows: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert system_module.system is posix
    assert loaded(monkeypatch, "system").system is windows
    used = {"Endpoint", "connect", "is_mine", "start", "started", "leave", "when_told_to_end"}
    for module in (windows, posix):
        assert used <= vars(module).keys()


@pytest.mark.parametrize("name", ["windows", "win32"])
def test_its_modules_are_for_windows_alone(name: str) -> None:
    with pytest.raises(ImportError):
        importlib.import_module(f"dg_engine.daemon.{name}")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ImportError):
        loaded(patch, "posix")


ASKED = [("1", True), (" 1 ", True), ("0", False), ("", False), ("yes", False)]


@pytest.mark.parametrize(("value", "offered"), ASKED)
def test_on_windows_it_is_offered_to_those_who_ask(
    monkeypatch: pytest.MonkeyPatch, value: str, offered: bool
) -> None:
    monkeypatch.setenv(WINDOWS_VARIABLE, value)
    assert is_offered()
    monkeypatch.setattr(sys, "platform", "win32")
    assert is_offered() is offered


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("shared", "value", "used"),
    [(True, "1", "DaemonEngine"), (False, "1", "child"), (True, "", "child")],
)
async def test_a_window_on_windows_shares_what_it_asks_to_share(
    monkeypatch: pytest.MonkeyPatch, shared: bool, value: str, used: str
) -> None:
    async def child(*_: object) -> str:
        return "child"

    async def reached(engine: object, folder: object) -> str:
        return type(engine).__name__

    monkeypatch.setattr(engine_host, "child_process", child)
    monkeypatch.setattr(engine_host, "_backend", reached)
    monkeypatch.setenv(WINDOWS_VARIABLE, value)
    with monkeypatch.context() as during:
        during.setattr(sys, "platform", "win32")
        found = await engine_host.chosen_engine(
            Configuration(share_engine=shared), lambda status: None
        )
    assert found == used


def test_commands_on_windows_say_how_to_try_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WINDOWS_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(CliError, match=f"never run on Windows; {WINDOWS_VARIABLE}=1 tries it"):
        serve.place_of_daemon()
    assert f"{WINDOWS_VARIABLE}=1 tries it" in doctor._shared().found


def test_commands_on_windows_ask_a_daemon_that_may_be_there(
    windows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WINDOWS_VARIABLE, "1")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    loaded(monkeypatch, "system")
    with monkeypatch.context() as during:
        during.setattr(sys, "platform", "win32")
        assert serve.place_of_daemon().address == NAME


def test_the_status_has_no_memory_where_windows_does_not_tell_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dg_engine.daemon.shared import resident_bytes

    monkeypatch.setattr(sys, "platform", "win32")
    assert resident_bytes(os.getpid()) is None
    assert DaemonStatus("1", 1, 0.0, None, []).memory_bytes is None
