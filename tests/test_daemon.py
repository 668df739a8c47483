"""One engine for all windows: it keeps the contract, is shared fairly, and ends with them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from importlib import metadata
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from dg_engine.daemon.link import DaemonEngine, ask
from dg_engine.daemon.system import runtime_place
from dg_engine.engine import EngineState
from dg_engine.job import DoneKind, Priority

from tests.daemon_world import SOON, World, frames_of, job, until, world
from tests.engine_contract import EngineContract, contract
from tests.engine_fixtures import tiny_checkpoint

__all__ = ["world"]


@contract
class TestDaemonEngine(EngineContract):
    """With the real engine, started by the real command."""

    @pytest_asyncio.fixture
    async def engine(self, world: World) -> AsyncIterator[DaemonEngine]:
        engine = DaemonEngine(
            tiny_checkpoint(),
            version=metadata.version("dg-lsp"),
            name="test",
            threads=1,
            dtype="float32",
        )
        await engine.start()
        await engine.info()
        assert [w.name for w in (await world.status()).engines[0].windows] == ["test"]
        yield engine
        await engine.close()


ATTACH = """
import asyncio, sys
from pathlib import Path
from dg_engine.daemon.link import DaemonEngine, ask
from dg_engine.daemon.system import runtime_place

async def main():
    engine = DaemonEngine(Path("scripted"), version="1.0", command=sys.argv[1:])
    print("here", flush=True)
    sys.stdin.readline()
    await engine.start()
    await engine.info()
    print((await ask(runtime_place())).pid, flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until all have told
    await engine.close()

asyncio.run(main())
"""


@pytest.mark.asyncio
async def test_windows_that_open_in_the_same_instant_share_one_daemon(world: World) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ATTACH, *world.command()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), SOON) == b"here\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"now\n")
    pids: set[int] = set()
    for process in processes:
        assert process.stdout is not None
        pids.add(int(await asyncio.wait_for(process.stdout.readline(), SOON)))
    assert len(pids) == 1
    await asyncio.gather(*(process.communicate(b"") for process in processes))
    assert [engine.model for engine in (await world.status()).engines] == [
        str(Path.cwd() / "scripted")
    ]


@pytest.mark.asyncio
async def test_a_second_window_finds_the_model_loaded_and_costs_no_second_one(world: World) -> None:
    first = await world.window("first", model="load-3")
    engine = await world.engine_pid()
    began = time.monotonic()
    second = await world.window("second", model="load-3")
    assert time.monotonic() - began < 2.9
    await asyncio.gather(world.works(first), world.works(second))
    status = await world.status()
    assert await world.engine_pid() == engine
    assert [window.name for window in status.engines[0].windows] == ["first", "second"]
    daemon = psutil.Process(status.pid)
    assert len(daemon.children()) == 1


@pytest.mark.asyncio
async def test_windows_with_other_models_have_engines_of_their_own(world: World) -> None:
    first, second = await world.window("first"), await world.window("second", model="other")
    await asyncio.gather(world.works(first), world.works(second))
    assert len((await world.status()).engines) == 2


@pytest.mark.asyncio
async def test_a_model_that_no_window_uses_makes_room_for_another(world: World) -> None:
    first = await world.window("first")
    engine = await world.engine_pid()
    await first.close()
    second = await world.window("second", model="other")
    await until(lambda: not psutil.pid_exists(engine))
    await world.works(second)
    assert await world.engine_pid() != engine


@pytest.mark.asyncio
async def test_a_model_that_no_window_uses_is_let_go_beside_one_that_is(world: World) -> None:
    first = await world.window("first", "--exit-after", "1")
    second = await world.window("second", model="other")
    pids = {e.model: e.pid for e in (await world.status()).engines}
    await first.close()
    await until(lambda: not psutil.pid_exists(pids[str(world.folder / "scripted")]))
    assert [e.pid for e in (await world.status()).engines] == [pids[str(world.folder / "other")]]
    await world.works(second)


@pytest.mark.asyncio
async def test_jobs_of_one_name_in_two_windows_are_two_jobs(world: World) -> None:
    first, second = await world.window("first"), await world.window("second")
    one, other = job("same", canvas=[10]), job("same", canvas=[20])
    answers = await asyncio.gather(frames_of(first, one), frames_of(second, other))
    assert [frames[-1].ids for frames in answers] == [[[11]], [[21]]]
    assert all(frame.job == "same" for frames in answers for frame in frames)


@pytest.mark.asyncio
async def test_a_window_that_floods_starves_no_other(world: World) -> None:
    flood, other = await world.window("flood"), await world.window("other")
    many = [asyncio.ensure_future(frames_of(flood, job(f"f{n}", 10, 2))) for n in range(200)]
    await world.hears(200, "flood")
    waits: list[float] = []
    for number in range(10):
        began = time.monotonic()
        await frames_of(other, job(f"o{number}", 10, 2))
        waits.append(time.monotonic() - began)
    assert not all(task.done() for task in many)  # the flood is still there
    assert sorted(waits)[5] < 0.5  # its own 20 ms, what runs, and the processes' time
    assert max(waits) < 2.0
    for task in many:
        task.cancel()


@pytest.mark.asyncio
async def test_an_interactive_job_overtakes_another_windows_edit(world: World) -> None:
    slow, fast = await world.window("slow"), await world.window("fast")
    edit = asyncio.ensure_future(frames_of(slow, job("edit", 20, 200, priority=Priority.EDIT)))
    await world.hears(1, "slow")
    frames = await frames_of(fast, job("now", 5, 2))
    assert frames[-1].done is not None
    assert not edit.done()
    edit.cancel()


@pytest.mark.asyncio
async def test_a_window_that_leaves_takes_its_jobs_along(world: World) -> None:
    leaving, staying = await world.window("leaving"), await world.window("staying")
    tasks = [asyncio.ensure_future(frames_of(leaving, job(f"{n}", 20, 500))) for n in range(5)]
    await world.hears(5, "leaving")
    await leaving.close()
    for task in tasks:
        last = (await task)[-1]
        assert last.done is not None
        assert last.done.kind is DoneKind.CANCELLED
    assert await world.works(staying) < SOON
    windows = (await world.status()).engines[0].windows
    assert [(w.name, w.waiting, w.running) for w in windows] == [("staying", 0, 0)]


@pytest.mark.asyncio
async def test_the_model_is_let_go_when_nobody_uses_it_and_comes_back(world: World) -> None:
    window = await world.window("a", "--unload-after", "0.5")
    daemon, engine = await world.pid(), await world.engine_pid()
    await until(lambda: not psutil.pid_exists(engine))
    status = await world.status()
    assert status.engines[0].state == "unloaded"
    await world.works(window)
    assert await world.pid() == daemon
    assert await world.engine_pid() != engine
    assert not any(s.state is EngineState.FAILED for s in world.told["a"])


@pytest.mark.asyncio
async def test_a_window_that_comes_while_the_engine_starts_again_is_told_so(world: World) -> None:
    first = await world.window("first", model="load-2")
    os.kill(await world.engine_pid(), signal.SIGKILL)
    await until(lambda: first.status.state is not EngineState.READY)
    late = await world.window("late", model="load-2")
    await world.works(late)
    states = [status.state for status in world.told["late"]]
    again = states.index(EngineState.READY) + 1
    assert {EngineState.LOADING, EngineState.RESTARTING} & set(states[again:])
    assert states[-1] is EngineState.READY


@pytest.mark.asyncio
async def test_the_daemon_ends_some_time_after_the_last_window(world: World) -> None:
    window = await world.window("a", "--exit-after", "1")
    daemon, engine = await world.pid(), await world.engine_pid()
    await window.close()
    assert psutil.pid_exists(daemon)  # a window that is reloaded finds it
    again = await world.window("again", "--exit-after", "1")
    assert await world.pid() == daemon
    await again.close()
    await until(lambda: not psutil.pid_exists(daemon) and not psutil.pid_exists(engine))
    assert await ask(runtime_place()) is None
    assert not world.place.socket.exists()


@pytest.mark.asyncio
async def test_its_status_tells_of_windows_jobs_times_and_the_cache(world: World) -> None:
    window = await world.window("a")
    running = asyncio.ensure_future(frames_of(window, job("long", 20, 300, priority=Priority.EDIT)))
    waiting = asyncio.ensure_future(frames_of(window, job("next", 20, 300, priority=Priority.EDIT)))
    await frames_of(window, job("done", 10, 3))
    report = (await world.status()).engines[0]
    assert (report.state, len(report.windows)) == ("ready", 1)
    assert report.memory_bytes is None or report.memory_bytes > 1_000_000
    (found,) = report.windows
    assert (found.name, found.waiting, found.running, found.done) == ("a", 1, 1, 1)
    assert found.p50_ms >= 20
    assert found.cached == 0.5
    running.cancel()
    waiting.cancel()


@pytest.mark.asyncio
async def test_only_the_user_may_enter_its_place(world: World) -> None:
    await world.window()
    for path, mode in (
        (world.place.folder, 0o700),
        (world.place.socket, 0o600),
        (world.place.log, 0o600),
    ):
        assert path.stat().st_mode & 0o777 == mode, path


@pytest.mark.asyncio
async def test_no_port_is_opened(world: World) -> None:
    await world.window()
    daemon = psutil.Process(await world.pid())
    for process in (daemon, *daemon.children(recursive=True)):
        assert not process.net_connections("inet")


def test_its_folder_is_the_users_even_without_a_runtime_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        for runtime in ("", "relative", "/not/there", folder + "/" + "long" * 30):
            monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
            assert runtime_place().folder.parent == Path(folder)
    monkeypatch.setattr(tempfile, "tempdir", None)
