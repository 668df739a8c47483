"""Faults: files that vanish, a full disk, a machine that sleeps, another user."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from dg_engine.daemon import link
from dg_engine.daemon.link import DaemonEngine
from dg_engine.daemon.messages import packed
from dg_engine.job import DoneKind
from dg_engine.wire import Close, Submit

from tests.daemon_world import SOON, World, frames_of, job, until
from tests.fault_table import AGAIN, NOTHING, OWN, fault, gone, hello, last_of, own_engine


@fault("the socket is deleted", "nothing; it is made again")
async def _(w: World) -> float:
    window = await w.window()
    before = await w.pid()
    w.place.socket.unlink()
    lasted = await until(w.place.socket.exists)
    await w.works(window)
    await w.works(await w.window("new"))
    assert await w.pid() == before
    return lasted


@fault("the socket is replaced by a file", "nothing; it is made again")
async def _(w: World) -> float:
    await w.window()
    before = await w.pid()
    w.place.socket.unlink()
    w.place.socket.write_text("no socket")
    lasted = await until(w.place.socket.is_socket)
    await w.works(await w.window("new"))
    assert await w.pid() == before
    return lasted


@fault("the lock is deleted", AGAIN)
async def _(w: World) -> float:
    window = await w.window()
    before = await w.pid()
    w.place.lock.unlink()
    lasted = await until(lambda: gone(before))
    await w.works(window)
    assert await w.pid() != before
    return lasted


@fault("the whole folder is deleted", AGAIN)
async def _(w: World) -> float:
    window = await w.window()
    before = await w.pid()
    for path in w.place.folder.iterdir():
        path.unlink()
    w.place.folder.rmdir()
    lasted = await until(lambda: gone(before))
    return lasted + await w.works(window)


@fault("a socket is left that nobody serves", NOTHING)
async def _(w: World) -> float:
    w.place.folder.mkdir(exist_ok=True)
    code = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, str(w.place.socket)], check=True
    )
    began = time.monotonic()
    await w.works(await w.window())
    return time.monotonic() - began


def place_is_unusable(what: str, spoil: Callable[[World], None]) -> None:
    @fault(what, OWN)
    async def _(w: World) -> float:
        spoil(w)
        with pytest.MonkeyPatch.context() as patch:
            own_engine(patch)
            began = time.monotonic()
            window = await w.window()
            await w.works(window)
            assert window.pid is not None
            return time.monotonic() - began


def opened_to_others(w: World) -> None:
    w.place.folder.chmod(0o755)


def made_a_link(w: World) -> None:
    w.place.folder.rmdir()
    (w.folder / "elsewhere").mkdir(mode=0o700)
    (w.folder / "dg-lsp").symlink_to(w.folder / "elsewhere")


def made_a_file(w: World) -> None:
    w.place.folder.rmdir()
    (w.folder / "dg-lsp").write_text("")


place_is_unusable("others may enter the folder", opened_to_others)
place_is_unusable("the folder is a link to another", made_a_link)
place_is_unusable("the folder is a file", made_a_file)


@fault("the daemon cannot start", OWN)
async def _(w: World) -> float:
    with pytest.MonkeyPatch.context() as patch:
        own_engine(patch)
        began = time.monotonic()
        window = DaemonEngine(
            *(w.folder / "scripted",),
            **{"version": "1", "command": [sys.executable, "-c", "raise SystemExit(3)"]},
        )
        w.windows.append(window)
        await window.start()
        await w.works(window)
        assert window.pid is not None
        return time.monotonic() - began


@fault("the daemon hangs (SIGSTOP) when a window comes", OWN)
async def _(w: World) -> float:
    await w.window()
    pid = await w.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.MonkeyPatch.context() as patch:
            own_engine(patch)
            patch.setattr(link, "ANSWER_SECONDS", 0.5)
            patch.setattr(link, "START_SECONDS", 1.0)
            began = time.monotonic()
            window = await w.window("late")
            await w.works(window)
            lasted = time.monotonic() - began
    finally:
        os.kill(pid, signal.SIGCONT)
    await w.works(w.windows[0])
    return lasted


@fault("the machine sleeps while a job runs (SIGSTOP, SIGCONT)", "the answer comes after it wakes")
async def _(w: World) -> float:
    window = await w.window()
    running = asyncio.ensure_future(frames_of(window, job("asleep", 10, 300)))
    await w.hears(1)
    pids = [await w.engine_pid(), await w.pid()]
    for pid in reversed(pids):
        os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(1)
    assert not running.done()
    began = time.monotonic()
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert last_of(await running).kind is DoneKind.MAX_STEPS
    return time.monotonic() - began


@fault("the disk is full (the log cannot be written)", NOTHING)
async def _(w: World) -> float:
    w.place.log.symlink_to("/dev/full")
    began = time.monotonic()
    window = await w.window()
    await w.works(window)
    reader, _ = await w.connection(b"\xff\xff\xff\xff")  # the daemon would log this
    assert await asyncio.wait_for(reader.read(), SOON) == b""
    os.kill(await w.engine_pid(), signal.SIGKILL)
    await w.works(window)
    return time.monotonic() - began


@fault("another user's process connects", "nothing; it is turned away")
async def _(w: World) -> float:
    window = await w.window()
    code = """
import os, socket, sys
os.setuid(65534)
try:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    connection.sendall(sys.argv[2].encode("latin-1"))
    print("heard", len(connection.recv(100)))
except OSError as error:
    print("failed", type(error).__name__)
"""
    hi = packed(hello()).decode("latin-1").replace("\0", "\1")
    place = w.place
    command = [sys.executable, "-c", code, str(place.socket), hi]

    def tried() -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    began = time.monotonic()
    assert tried() == "failed PermissionError"  # the folder
    w.folder.chmod(0o755)
    place.folder.chmod(0o755)
    assert tried() == "failed PermissionError"  # the socket
    place.socket.chmod(0o666)
    assert tried() in ("heard 0", "failed ConnectionResetError", "failed BrokenPipeError")
    lasted = time.monotonic() - began
    place.folder.chmod(0o700)
    await w.works(window)
    return lasted


@fault("a window says goodbye in the middle of a job", "nothing in other windows")
async def _(w: World) -> float:
    other = await w.window()
    model = str(w.folder / "scripted")
    began = time.monotonic()
    reader, _ = await w.connection(hello(model=model), Submit(job("long", 20, 1000)), Close())
    await asyncio.wait_for(reader.read(), SOON)
    await w.works(other)
    return time.monotonic() - began
