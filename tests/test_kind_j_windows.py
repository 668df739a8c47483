"""Kind J: windows start, stop and crash; they share one engine, and memory is given back."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from dg_engine.daemon.link import ask, quit_daemon
from dg_engine.daemon.messages import DaemonStatus
from dg_engine.daemon.place import Place

from tests.real_server import LOAD_SECONDS, SERVE, checkpoint, kinds, normals, settings_for
from tests.server_fixtures import CURSOR, TEXT
from tests.wire_client import WireClient

__all__ = ["checkpoint"]

EXIT_AFTER_SECONDS = 1
GONE_SECONDS = EXIT_AFTER_SECONDS + 4

pytestmark = pytest.mark.asyncio


class Windows:
    """Real servers that share an engine."""

    def __init__(self, checkpoint: Path, folder: Path) -> None:
        self.place = Place(folder / "dg-lsp")
        self.all: list[WireClient] = []
        self.checkpoint = checkpoint

    async def open(self, name: str, ready: bool = True, **more: object) -> WireClient:
        """A window whose model is loaded, unless it need not be."""
        window = await WireClient.run("-c", SERVE)
        self.all.append(window)
        own = {"engineExitAfterS": EXIT_AFTER_SECONDS, **more}
        settings = settings_for(self.checkpoint, **own)
        await window.initialize(initializationOptions=settings, clientInfo={"name": name})
        window.open(TEXT)
        if ready:
            await window.until(lambda: normals(window) > 0, LOAD_SECONDS)
        return window

    async def status(self) -> DaemonStatus:
        """Of the daemon, which serves."""
        status = await ask(self.place)
        assert status is not None
        return status

    async def left(self, *names: str) -> None:
        """Wait until these windows alone are attached."""
        end = time.monotonic() + GONE_SECONDS
        while [w.name for e in (await self.status()).engines for w in e.windows] != [*names]:
            assert time.monotonic() < end, "a window has stayed"
            await asyncio.sleep(0.05)

    async def processes(self) -> list[psutil.Process]:
        """The daemon and its engine."""
        daemon = psutil.Process((await self.status()).pid)
        return [daemon, *daemon.children()]


async def answers(window: WireClient) -> None:
    """A request is answered with what the model says."""
    answer = await window.answer(window.ask_completion(*CURSOR, kind=1))
    assert "items" in answer["result"]


async def gone(processes: list[psutil.Process], seconds: float = GONE_SECONDS) -> None:
    """All have ended, soon."""
    end = time.monotonic() + seconds
    while [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]:
        assert time.monotonic() < end, "a process has stayed"
        await asyncio.sleep(0.05)


@pytest_asyncio.fixture
async def windows(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Windows]:
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        found = Windows(checkpoint, Path(folder))
        yield found
        for window in found.all:
            await window.close()
        status = await ask(found.place)
        if status is not None:
            await quit_daemon(found.place)
            await gone([psutil.Process(status.pid)])


async def test_two_windows_share_one_engine(windows: Windows) -> None:
    first, second = await windows.open("first"), await windows.open("second")
    await asyncio.gather(answers(first), answers(second))
    (engine,) = (await windows.status()).engines
    assert [(w.name, w.done > 0) for w in engine.windows] == [("first", True), ("second", True)]
    assert len(await windows.processes()) == 2
    for window in (first, second):
        assert psutil.Process(window.process.pid).children() == []


async def test_the_engine_outlives_a_window_and_ends_after_the_last(windows: Windows) -> None:
    first, second = await windows.open("first"), await windows.open("second")
    processes = await windows.processes()
    first.process.kill()
    await first.ended()
    await windows.left("second")
    # Nothing tells that something has not happened: the time for it must have passed.
    await asyncio.sleep(EXIT_AFTER_SECONDS + 1.5)
    await answers(second)
    assert await windows.processes() == processes
    second.process.kill()
    await second.ended()
    await gone(processes)
    assert not windows.place.socket.exists()


async def test_a_window_that_is_closed_and_opened_finds_the_model_loaded(
    windows: Windows,
) -> None:
    first = await windows.open("before", engineExitAfterS=60)
    processes = await windows.processes()
    first.notify("exit", None)
    await first.ended()
    await answers(await windows.open("after"))
    assert await windows.processes() == processes


@pytest.mark.parametrize("which", ["engine", "daemon"])
async def test_a_crash_is_told_in_every_window_and_mended(windows: Windows, which: str) -> None:
    opened = [await windows.open("first"), await windows.open("second")]
    daemon, engine = await windows.processes()
    before = [normals(window) for window in opened]
    (engine if which == "engine" else daemon).kill()
    for window, count in zip(opened, before, strict=True):
        await window.until(lambda w=window, c=count: normals(w) > c, LOAD_SECONDS)
        assert "Warning" in kinds(window)
        await answers(window)
    await gone([engine])
    assert len(await windows.processes()) == 2


async def test_a_model_that_was_let_go_is_loaded_again_and_that_is_told(windows: Windows) -> None:
    window = await windows.open("only", engineUnloadAfterS=1)
    (_, engine) = await windows.processes()
    await gone([engine], LOAD_SECONDS)
    assert (await windows.status()).engines[0].state == "unloaded"
    assert kinds(window)[-1] == "Normal"
    before = len(window.said("didChangeStatus"))
    await answers(window)
    told = [(s["kind"], s["message"]) for s in window.said("didChangeStatus")[before:]]
    assert ("Inactive", "The model is loading; suggestions come as soon as it is ready.") in told
    assert told[-1][0] == "Normal"


async def test_a_window_whose_model_is_missing_says_so_and_harms_no_other(
    windows: Windows, tmp_path: Path
) -> None:
    good = await windows.open("good")
    bad = await WireClient.run("-c", SERVE)
    windows.all.append(bad)
    (tmp_path / "config.json").write_text("{}")
    await bad.initialize(initializationOptions={"model": str(tmp_path)})
    await bad.until(lambda: "Error" in kinds(bad), LOAD_SECONDS)
    assert bad.said("didChangeStatus")[-1]["message"].endswith(".")
    await answers(good)


async def test_no_file_of_the_shared_engine_is_anothers_to_read(windows: Windows) -> None:
    await windows.open("first")
    for path in (windows.place.folder, *windows.place.folder.iterdir()):
        assert path.lstat().st_mode & 0o077 == 0, path
        assert path.lstat().st_uid == os.getuid()


@pytest.mark.parametrize("how", ["truncated", "replaced", "removed"])
async def test_a_model_whose_file_changes_while_it_runs(
    windows: Windows, checkpoint: Path, tmp_path: Path, how: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder)
    window = await windows.open("only", model=str(folder))
    (weights,) = folder.glob("*.safetensors")
    whole = weights.read_bytes()
    if how == "removed":
        weights.unlink()
    else:
        weights.write_bytes(whole[: len(whole) // 2] if how == "truncated" else bytes(len(whole)))
    # What is loaded goes on, or its end is told.
    answer = await window.answer(window.ask_completion(*CURSOR, kind=1))
    assert "result" in answer
    (_, engine) = await windows.processes()
    engine.kill()
    await window.until(lambda: kinds(window)[-1] == "Error", LOAD_SECONDS)
    assert window.said("didChangeStatus")[-1]["message"].endswith(".")
    weights.write_bytes(whole)
    await answers(await windows.open("after it was mended", model=str(folder)))
