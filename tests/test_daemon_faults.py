"""Every fault ends in a recovered state or one clear status, in bounded time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import psutil
import pytest
from dg_engine.daemon import link
from dg_engine.daemon.link import DaemonEngine, ask
from dg_engine.daemon.messages import PROTOCOL, Hello, packed
from dg_engine.engine import EngineError, EngineState
from dg_engine.job import Done, DoneKind, Frame
from dg_engine.wire import HEADER, MAX_FRAME_BYTES, Close, Ping, Submit

from tests.daemon_world import SOON, World, frames_of, job, until, world
from tests.fault_table import FAULTS, RECOVERED_SECONDS, fault, report
from tests.scripted_child import DIE, FAIL, HALF, NOISE
from tests.scripted_daemon import CHILD

__all__ = ["world"]

AGAIN = "“restarting” for a moment; what ran ends empty, the next request is answered"
NOTHING = "nothing"
OWN = "nothing; the window runs an engine of its own"


def hello(**fields: object) -> Hello:
    """What a raw connection says first."""
    return Hello(
        **{
            **{"protocol": PROTOCOL, "version": "1.0", "pid": 1, "name": "raw"},
            **{"model": "raw", **fields},
        }  # pyright: ignore[reportArgumentType]
    )


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def last_of(frames: list[Frame]) -> Done:
    """The end of a job; there is one, and it is the last frame."""
    ends = [frame.done for frame in frames if frame.done is not None]
    assert len(ends) == 1
    assert frames[-1].done is ends[0]
    return ends[0]


# ---------------------------------------------------------------- the daemon dies in every state


async def idle(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    return await w.window(), []


async def denoising(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    window = await w.window()
    running = asyncio.ensure_future(frames_of(window, job("long", 20, 1000)))
    await asyncio.sleep(0.2)
    return window, [running]


async def queued(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    window = await w.window()
    tasks = [asyncio.ensure_future(frames_of(window, job(f"{n}", 20, 1000))) for n in range(6)]
    await asyncio.sleep(0.2)
    return window, tasks


async def loading(w: World) -> tuple[DaemonEngine, list[asyncio.Future[list[Frame]]]]:
    window = await w.window(model="load-2", ready=False)
    waiting = asyncio.ensure_future(frames_of(window, job("early")))
    while await ask(w.place) is None:  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.3)
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


# ---------------------------------------------------------------- the engine dies in every state


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
    await asyncio.sleep(0.1)
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


# ---------------------------------------------------------------- windows die in every state


def window_dies(state: str, code: str) -> None:
    @fault(f"window, {state}: SIGKILL", "nothing in other windows")
    async def _(w: World) -> float:
        other = await w.window("other")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _WINDOW.format(code=code), str(w.place.socket)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), SOON)
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
time.sleep(0.2)
print("said", flush=True)
time.sleep(60)
"""
window_dies("attached", "")
window_dies("with a job running", "connection.sendall(packed(job(1, 1000)))")
window_dies("with 50 jobs waiting", "[connection.sendall(packed(job(n, 1000))) for n in range(50)]")
window_dies("in the middle of a frame", "connection.sendall(packed(job(1, 9))[:9])")
window_dies(
    "before it reads its answers", "[connection.sendall(packed(job(n, 1))) for n in range(9)]"
)


# ---------------------------------------------------------------- what is no message of ours


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
    await asyncio.sleep(0.1)
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
    tasks = [asyncio.ensure_future(frames_of(window, job(f"{n}", 20, 10))) for n in range(300)]
    await asyncio.sleep(0.5)
    refused = [task for task in tasks if task.done()]
    words = [last_of(task.result()).message for task in refused]
    assert sum("cancel some" in message for message in words) >= 300 - 256 - 1
    lasted = await w.works(other)
    for task in tasks:
        task.cancel()
    return lasted


# ---------------------------------------------------------------- versions


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


def own_engine(patch: pytest.MonkeyPatch) -> None:
    """What a window runs where there is no daemon for it."""
    patch.setattr(link, "engine_command", lambda _: [sys.executable, "-P", str(CHILD)])


speaks(PROTOCOL - 1, "an older")
speaks(PROTOCOL + 1, "a newer")


# ---------------------------------------------------------------- files and the machine


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
    running = asyncio.ensure_future(frames_of(window, job("asleep", 10, 30)))
    await asyncio.sleep(0.1)
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


@pytest.mark.asyncio
@pytest.mark.parametrize("what", FAULTS)
async def test_a_fault_is_survived(world: World, what: str) -> None:
    row = FAULTS[what]
    seconds = await row.inject(world)
    assert seconds < RECOVERED_SECONDS
    report(row, seconds)


def test_the_table_is_long_enough() -> None:
    assert len(FAULTS) >= 40


def test_a_clock_that_jumps_is_not_looked_at() -> None:
    for module in Path(link.__file__).parent.glob("*.py"):
        assert not re.search(r"\btime\.time\b|\bdatetime\b", module.read_text("utf-8")), module.name
