"""Faults: daemon, engine or window dies, in every state that it can be in."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from dg_engine.daemon.link import DaemonEngine
from dg_engine.engine import EngineError, EngineState
from dg_engine.job import DoneKind, Frame

from tests.daemon_world import SOON, World, frames_of, job, until
from tests.fault_table import AGAIN, NOTHING, fault, gone, last_of
from tests.scripted_child import DIE, FAIL, HALF, NOISE


async def idle(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    return await w.window(), []


async def denoising(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    window = await w.window()
    running = asyncio.ensure_future(frames_of(window, job("long", 20, 1000)))
    await w.hears(1)
    return window, [running]


async def queued(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    window = await w.window()
    tasks = [asyncio.ensure_future(frames_of(window, job(f"{n}", 20, 1000))) for n in range(6)]
    await w.hears(6)
    return window, tasks


async def loading(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    window = await w.window(model="load-2", ready=False)
    waiting = asyncio.ensure_future(frames_of(window, job("early")))
    await w.engine_begins()
    await w.hears(1)
    return window, [waiting]


async def unloaded(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    window = await w.window("a", "--unload-after", "0.2")
    pid = await w.engine_pid()
    await until(lambda: gone(pid))
    return window, []


async def answered(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    window = await w.window()
    await frames_of(window, job("before"))
    return window, []


Prepared = Callable[[World], Awaitable[tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]]]
STATES: dict[str, Prepared] = {
    "idle": idle,
    "denoising": denoising,
    "with five jobs waiting": queued,
    "loading": loading,
    "unloaded": unloaded,
    "just after an answer": answered,
}


def daemon_dies(state: str, number: signal.Signals) -> None:
    @fault(f"daemon, {state}: {number.name}", AGAIN)
    async def _(w: World) -> float:
        window, tasks = await STATES[state](w)
        status = await w.status()
        engine = status.engines[0].pid
        began = time.monotonic()
        os.kill(status.pid, number)
        for task in tasks:
            done = last_of(await task)
            # A job that waits for a model that is loaded anew may be answered after all.
            assert done.kind in (DoneKind.ERROR, DoneKind.CANCELLED, DoneKind.MAX_STEPS)
            assert done.kind is not DoneKind.MAX_STEPS or state == "loading"
        await w.works(window)
        lasted = time.monotonic() - began
        assert await w.pid() != status.pid
        if engine is not None:
            await until(lambda: gone(engine))
        return lasted


for _state in STATES:
    daemon_dies(_state, signal.SIGKILL)
for _state in ("idle", "denoising"):
    daemon_dies(_state, signal.SIGTERM)


@fault("daemon, no window attached: SIGKILL", NOTHING)
async def _(w: World) -> float:
    window = await w.window()
    pid = await w.pid()
    await window.close()
    os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    await w.works(await w.window("b"))
    return time.monotonic() - began


@fault("daemon and its engine: SIGKILL together", AGAIN)
async def _(w: World) -> float:
    window, tasks = await denoising(w)
    pids = [await w.engine_pid(), await w.pid()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert last_of(await tasks[0]).kind is DoneKind.ERROR
    return await w.works(window)


@fault("daemon: SIGKILL with four windows attached", AGAIN)
async def _(w: World) -> float:
    windows = [await w.window(f"w{n}") for n in range(4)]
    os.kill(await w.pid(), signal.SIGKILL)
    lasted = max(await asyncio.gather(*(w.works(one, f"j{n}-") for n, one in enumerate(windows))))
    assert len((await w.status()).engines[0].windows) == 4
    return lasted


def engine_dies(state: str) -> None:
    @fault(f"engine, {state}: SIGKILL", AGAIN)
    async def _(w: World) -> float:
        window, tasks = await STATES[state](w)
        daemon, engine = await w.pid(), await w.engine_pid()
        os.kill(engine, signal.SIGKILL)
        began = time.monotonic()
        for task in tasks[:1]:
            done = last_of(await task)
            assert done.kind is DoneKind.ERROR
        for task in tasks[1:]:
            task.cancel()
        await w.works(window)
        assert await w.pid() == daemon
        assert await w.engine_pid() != engine
        return time.monotonic() - began


for _state in ("idle", "denoising", "with five jobs waiting", "loading", "just after an answer"):
    engine_dies(_state)


@fault("engine dies while another window's jobs wait", "only the job that ran ends empty")
async def _(w: World) -> float:
    window, tasks = await denoising(w)
    other = await w.window("other")
    waiting = asyncio.ensure_future(frames_of(other, job("waits")))
    await w.hears(1, "other")
    os.kill(await w.engine_pid(), signal.SIGKILL)
    began = time.monotonic()
    assert last_of(await tasks[0]).kind is DoneKind.ERROR
    assert last_of(await waiting).kind is DoneKind.MAX_STEPS
    lasted = time.monotonic() - began
    await w.works(window)
    return lasted


def engine_fails(what: str, token: int, kind: DoneKind, words: str, seen: str = AGAIN) -> None:
    @fault(f"engine: {what}", seen)
    async def _(w: World) -> float:
        window = await w.window()
        one = msgspec.structs.replace(job("bad"), prompt=[token])
        done = last_of(await frames_of(window, one))
        assert done.kind is kind
        assert words in done.message
        return await w.works(window)


engine_fails("exits with code 7 in a job (a lost GPU)", DIE, DoneKind.ERROR, "exit code 7")
engine_fails("writes what is no frame", NOISE, DoneKind.ERROR, "Not a reply")
engine_fails("writes half a frame and exits", HALF, DoneKind.ERROR, "exit code 0")
engine_fails(
    *("out of memory in a job", FAIL, DoneKind.ERROR, "out of memory"),
    seen="the request ends empty; the status says why",
)


@fault("the model's folder is missing", "status: no folder, with its name")
async def _(w: World) -> float:
    began = time.monotonic()
    window = await w.window(model="missing", ready=False)
    with pytest.raises(EngineError, match="no folder"):
        await asyncio.wait_for(window.info(), SOON)
    lasted = time.monotonic() - began
    assert window.status.state is EngineState.FAILED
    await w.works(await w.window("other"))
    return lasted


@fault("a model that was refused is asked for again", "status: the same sentence, looked at anew")
async def _(w: World) -> float:
    lasted = 0.0
    for name in ("first", "second"):
        began = time.monotonic()
        window = await w.window(name, model="missing", ready=False)
        with pytest.raises(EngineError, match="no folder"):
            await asyncio.wait_for(window.info(), SOON)
        lasted = time.monotonic() - began
    return lasted


def window_dies(state: str, code: str, jobs: int = 0) -> None:
    @fault(f"window, {state}: SIGKILL", "nothing in other windows")
    async def _(w: World) -> float:
        other = await w.window("other")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _WINDOW.format(code=code), str(w.place.socket)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), SOON)
        await w.sees("doomed")
        await w.hears(jobs, "doomed")
        process.kill()
        began = time.monotonic()
        await process.wait()
        await w.works(other)
        while len((await w.status()).engines[0].windows) != 1:
            assert time.monotonic() - began < SOON
            await asyncio.sleep(0.02)
        (left,) = (await w.status()).engines[0].windows
        assert (left.name, left.waiting, left.running) == ("other", 0, 0)
        return time.monotonic() - began


_WINDOW = """
import socket, sys, time
from pathlib import Path
from dg_engine.daemon.messages import PROTOCOL, Hello, packed
from dg_engine.job import CanvasJob
from dg_engine.wire import HEADER, Submit
def job(n, steps):
    return Submit(CanvasJob(id=str(n), prompt=[20], canvas=[1], roles=b"\\0", max_steps=steps))
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
model = str(Path(sys.argv[1]).parent.parent / "scripted")
connection.sendall(packed(Hello(PROTOCOL, "1.0", 1, "doomed", model)))
{code}
print("said", flush=True)
time.sleep(60)
"""
window_dies("attached", "")
window_dies("with a job running", "connection.sendall(packed(job(1, 1000)))", 1)
window_dies(
    "with 50 jobs waiting", "[connection.sendall(packed(job(n, 1000))) for n in range(50)]", 50
)
window_dies("in the middle of a frame", "connection.sendall(packed(job(1, 9))[:9])")
window_dies(
    "before it reads its answers", "[connection.sendall(packed(job(n, 1))) for n in range(9)]", 9
)
