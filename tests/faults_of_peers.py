"""Faults: a peer that says what it should not, does not read, or has another version."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time

import msgspec
import pytest
from dg_engine.daemon import link
from dg_engine.daemon.messages import PROTOCOL, Focus, packed
from dg_engine.engine import EngineState
from dg_engine.wire import HEADER, MAX_FRAME_BYTES, Ping, Submit

from tests.daemon_world import SOON, World, frames_of, job
from tests.fault_table import NOTHING, OWN, fault, hello, last_of, own_engine
from tests.faults_of_processes import denoising


def is_let_go(what: str, *said: bytes) -> None:
    @fault(f"a peer sends {what}", "nothing; the peer is let go")
    async def _(w: World) -> float:
        other = await w.window()
        began = time.monotonic()
        reader, writer = await w.connection(*said)
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), SOON)  # to its end
        lasted = time.monotonic() - began
        writer.close()
        await w.works(other)
        assert len((await w.status()).engines[0].windows) == 1
        return lasted


def framed(body: bytes) -> bytes:
    return HEADER.pack(len(body)) + body


is_let_go("a frame of no bytes", framed(b""))
is_let_go("a frame that claims 4 GiB", b"\xff\xff\xff\xff")
is_let_go("a frame one byte above the limit", struct.pack(">I", MAX_FRAME_BYTES + 1))
is_let_go("bytes that are no MessagePack", framed(b"\xc1\xc1\xc1"))
is_let_go("a message of an unknown kind", framed(msgspec.msgpack.encode({"type": "boo"})))
is_let_go("a list where a message should be", framed(msgspec.msgpack.encode([1, 2])))
is_let_go("a value 100,000 levels deep", framed(b"\x91" * 100_000 + b"\x01"))
is_let_go("a job before its hello", packed(Submit(job())))
is_let_go("a focus before its hello", packed(Focus(True)))
is_let_go(
    *("a focus that is no truth value", packed(hello())),
    framed(msgspec.msgpack.encode({"type": "focus", "focused": "sideways"})),
)
is_let_go("its hello twice", packed(hello()), packed(hello()))
is_let_go("an HTTP request", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
is_let_go(
    "a hello whose fields have wrong types", framed(b"\x82\xa4type\xa5hello\xa8protocol\xa1x")
)


@fault("a peer sends half a frame and then nothing", "nothing; let go after the time for a frame")
async def _(w: World) -> float:
    other = await w.window()
    _, writer = await w.connection(packed(hello())[:11])
    began = time.monotonic()
    await w.works(other)
    lasted = time.monotonic() - began
    writer.close()
    return lasted


@fault("a peer never reads what it is sent", "nothing in other windows; its own drafts are dropped")
async def _(w: World) -> float:
    other = await w.window()
    reader, writer = await w.connection(hello(model=str(w.folder / "scripted")))
    reader._transport.pause_reading()  # pyright: ignore
    for number in range(200):
        writer.write(packed(Submit(job(f"n{number}", 0, 20, canvas=[1] * 256, roles=bytes(256)))))
    await w.hears(200, "raw")
    lasted = await w.works(other)
    writer.transport.abort()
    return lasted


@fault("a peer asks for signs of life and never reads", "nothing; the peer is let go")
async def _(w: World) -> float:
    other = await w.window()
    reader, writer = await w.connection(hello(model=str(w.folder / "scripted")))
    reader._transport.pause_reading()  # pyright: ignore
    began = time.monotonic()
    while len((await w.status()).engines[0].windows) == 2:
        assert time.monotonic() - began < SOON
        for _ in range(2_000):
            writer.write(packed(Ping(1)))
        await asyncio.sleep(0.01)
    lasted = time.monotonic() - began
    writer.transport.abort()
    await w.works(other)
    return lasted


@fault("a window has too many jobs", "the jobs above the limit end with a sentence")
async def _(w: World) -> float:
    window, other = await w.window(), await w.window("other")
    tasks = [asyncio.ensure_future(frames_of(window, job(f"{n}", 20, 100))) for n in range(300)]
    began = time.monotonic()
    while True:
        answers = [last_of(task.result()) for task in tasks if task.done()]
        refused = sum("cancel some" in answer.message for answer in answers)
        ended = len(answers) - refused
        if refused >= 300 - 256 - 1 - ended:  # 256 wait, and one runs
            break
        assert time.monotonic() - began < SOON, "too few were refused"
        await asyncio.sleep(0.01)
    lasted = await w.works(other)
    for task in tasks:
        task.cancel()
    return lasted


@fault("a newer window comes while the daemon is idle", "“restarting” for a moment in old windows")
async def _(w: World) -> float:
    old = await w.window("old", version="1.0")
    before = await w.pid()
    began = time.monotonic()
    new = await w.window("new", version="1.1")
    await asyncio.gather(w.works(new, "n"), w.works(old, "o"))
    assert await w.pid() != before
    assert (await w.status()).version == "1.1"
    assert {x.name for x in (await w.status()).engines[0].windows} == {"old", "new"}
    return time.monotonic() - began


@fault("a newer window comes while jobs run", "nothing; it uses the older daemon")
async def _(w: World) -> float:
    _, tasks = await denoising(w)
    before = await w.pid()
    began = time.monotonic()
    new = await w.window("new", version="9")
    lasted = time.monotonic() - began
    assert await w.pid() == before
    assert not tasks[0].done()
    tasks[0].cancel()
    await w.works(new)
    return lasted


@fault("an older window comes to a newer daemon", NOTHING)
async def _(w: World) -> float:
    await w.window("new", version="2.0")
    began = time.monotonic()
    old = await w.window("old", version="1.0.dev3")
    await w.works(old)
    assert (await w.status()).version == "2.0"
    return time.monotonic() - began


@fault("a window comes that is newer than what is installed", OWN)
async def _(w: World) -> float:
    with pytest.MonkeyPatch.context() as patch:
        own_engine(patch)
        began = time.monotonic()
        window = await w.window("newer", version="2.0", installed="1.0")
        await w.works(window)
        lasted = time.monotonic() - began
    assert window.pid is not None  # a child of this process
    assert lasted < link.START_SECONDS  # no endless starting of daemons that make room
    assert "Exception" not in w.place.log.read_text(encoding="utf-8")
    return lasted


def speaks(protocol: int, what: str) -> None:
    @fault(f"a window of {what} protocol comes", OWN)
    async def _(w: World) -> float:
        other, _ = await denoising(w)  # a busy daemon does not make room
        before = await w.pid()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(link, "PROTOCOL", protocol)
            own_engine(patch)
            began = time.monotonic()
            window = await w.window("other protocol")
            await w.works(window)
            lasted = time.monotonic() - began
        assert window.pid is not None  # a child of this process
        assert await w.pid() == before
        assert other.status.state is EngineState.READY
        return lasted


speaks(PROTOCOL - 1, "an older")
speaks(PROTOCOL + 1, "a newer")
