"""The window that the user looks at goes first; daemons are told, but for those from before."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import msgspec
import pytest
from dg_engine.daemon.link import DaemonEngine
from dg_engine.daemon.messages import PROTOCOL, Welcome, packed
from dg_engine.job import Done, DoneKind, Frame
from dg_engine.wire import HEADER, Progress, Ready, framed

from tests.daemon_world import SOON, World, frames_of, job, world
from tests.scripted_child import INFO

__all__ = ["world"]

pytestmark = pytest.mark.asyncio


async def says(world: World, **wanted: bool | None) -> None:
    """Wait until the daemon says this of the focus of its windows, and has no others."""
    began = time.monotonic()
    while True:
        found = {w.name: w.focused for e in (await world.status()).engines for w in e.windows}
        if found == wanted:
            return
        assert time.monotonic() - began < SOON, found
        await asyncio.sleep(0.02)


async def order_of(world: World, windows: dict[str, DaemonEngine]) -> list[str]:
    """Which window's job ends first, when all come, in this order, while another one runs."""
    running = asyncio.ensure_future(frames_of(windows["busy"], job("runs", 20, 1000)))
    await world.hears(1, "busy")
    ended: list[str] = []

    async def asks(name: str) -> None:
        await frames_of(windows[name], job("asked", 5, 2))
        ended.append(name)

    asked: list[asyncio.Future[None]] = []
    for name in windows:
        if name != "busy":
            asked.append(asyncio.ensure_future(asks(name)))
            await world.hears(1, name)
    running.cancel()
    await asyncio.gather(*asked)
    return ended


@pytest.mark.parametrize(
    ("looked_at", "order"),
    [(None, ["third", "second", "first"]), ("first", ["first", "third", "second"])],
)
async def test_the_window_in_focus_goes_before_those_that_were_typed_in_later(
    world: World, looked_at: str | None, order: list[str]
) -> None:
    windows = {name: await world.window(name) for name in ("busy", "first", "second", "third")}
    wanted: dict[str, bool | None] = dict.fromkeys(windows)
    if looked_at is not None:
        for name, window in windows.items():
            wanted[name] = name == looked_at
            window.set_focus(name == looked_at)
    await says(world, **wanted)
    assert await order_of(world, windows) == order


async def test_a_focus_that_floods_starves_no_other(world: World) -> None:
    flood, other = await world.window("flood"), await world.window("other")
    flood.set_focus(True)
    await says(world, flood=True, other=None)
    many = [asyncio.ensure_future(frames_of(flood, job(f"f{n}", 10, 2))) for n in range(200)]
    await world.hears(200, "flood")
    began = time.monotonic()
    for number in range(10):
        await frames_of(other, job(f"o{number}", 10, 2))
    assert not all(task.done() for task in many)  # the flood is still there
    # Ten times 20 ms of its own and what runs before, the burst of the flood, the processes' time.
    assert time.monotonic() - began < 3.0
    for task in many:
        task.cancel()


async def test_the_next_daemon_is_told_without_being_asked(world: World) -> None:
    first, second = await world.window("first"), await world.window("second")
    first.set_focus(True)
    second.set_focus(False)
    await says(world, first=True, second=False)
    os.kill(await world.pid(), signal.SIGKILL)
    await asyncio.gather(world.works(first, "f"), world.works(second, "s"))
    await says(world, first=True, second=False)


async def test_what_was_said_before_a_daemon_served_is_not_lost(world: World) -> None:
    window = await world.window("early", ready=False)
    window.set_focus(False)
    window.set_focus(True)
    await window.info()
    await says(world, early=True)
    window.set_focus(None)
    await says(world, early=None)


async def test_a_window_that_leaves_takes_its_focus_along(world: World) -> None:
    leaving, staying = await world.window("leaving"), await world.window("staying")
    leaving.set_focus(True)
    await says(world, leaving=True, staying=None)
    await leaving.close()
    await says(world, staying=None)
    leaving.set_focus(False)  # nobody is there to be told
    await world.works(staying)


async def test_a_daemon_from_before_is_not_told_and_works_on(world: World) -> None:
    """It would let go of the window, again and again."""
    said: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def put(body: dict[str, Any]) -> None:
            encoded = msgspec.msgpack.encode(body)
            writer.write(HEADER.pack(len(encoded)) + encoded)

        while True:
            try:
                (length,) = HEADER.unpack(await reader.readexactly(HEADER.size))
            except asyncio.IncompleteReadError:
                writer.close()
                return
            message = msgspec.msgpack.decode(await reader.readexactly(length))
            said.append(message["type"])
            match message["type"]:
                case "hello":
                    put({"type": "welcome", "protocol": PROTOCOL, "version": "1.0", "pid": 1})
                    writer.write(framed(Ready(INFO, 1, 0.0)))
                case "submit":
                    one = message["job"]
                    ids = [[token + 1 for token in one["canvas"]]]
                    done = Done(DoneKind.MAX_STEPS)
                    writer.write(framed(Progress(Frame(job=one["id"], step=1, ids=ids, done=done))))
                case _:
                    pass

    world.place.folder.mkdir(mode=0o700, exist_ok=True)
    server = await asyncio.start_unix_server(serve, world.place.socket)
    window = await world.window("new")
    window.set_focus(True)
    await world.works(window)
    window.set_focus(False)
    await world.works(window, "more")
    await window.close()
    server.close()
    assert said[:1] == ["hello"]
    assert said.count("submit") == 2
    assert "focus" not in said


def welcome_of_before(body: bytes) -> object:
    """What a window reads that does not know of the focus."""

    class Before(msgspec.Struct, frozen=True, tag="welcome"):
        protocol: int
        version: str
        pid: int

    return msgspec.structs.astuple(msgspec.msgpack.decode(body, type=Before))


async def test_a_window_from_before_reads_the_welcome_and_counts_as_one_that_says_nothing(
    world: World,
) -> None:
    body = packed(Welcome(PROTOCOL, "1.0", 7, hears_focus=True))[HEADER.size :]
    assert welcome_of_before(body) == (PROTOCOL, "1.0", 7)
    await world.works(await world.window("before"))
    await says(world, before=None)


async def test_a_thousand_changes_of_focus_harm_nobody(world: World) -> None:
    window, other = await world.window("restless"), await world.window("other")
    for number in range(1000):
        window.set_focus(number % 2 == 0)
    window.set_focus(True)
    await asyncio.gather(world.works(window, "r"), world.works(other, "o"))
    await says(world, restless=True, other=None)
