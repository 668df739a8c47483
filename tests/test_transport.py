"""What stands between an editor's pipe and the event loop: as little as can be."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dg_lsp import transport
from dg_lsp.documents import Document
from dg_lsp.pipes import Ready, writer_now
from dg_lsp.shown.offer import Offer, rejected
from dg_lsp.shown.prefetch import Prefetch
from dg_lsp.transport import Inbox, Outbox

from tests import server_fixtures
from tests.server_fixtures import CURSOR, TEXT, Clients
from tests.wire_client import DOCUMENT, WireClient

clients, tiny = server_fixtures.clients, server_fixtures.tiny
Ends = tuple[int, int]


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def pipe() -> Ends:
    return os.pipe()


def pair() -> Ends:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


@pytest.fixture(params=[pipe, pair])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """What is written to the second can be read from the first."""
    made: Ends = request.param()
    yield made
    for end in made:
        try:
            os.close(end)
        except OSError:
            continue


def threads(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


class Read:
    """An inbox at the end of a pipe, in a running loop, and what it handed over."""

    def __init__(self, end: int, handled: Callable[[bytes], None] | None = None) -> None:
        self.bodies: list[bytes] = []
        self.ended = asyncio.Event()
        self._handled = handled
        read = functools.partial(os.read, end)
        self._inbox = Inbox(read, self._handle, self.ended.set, Ready.of(end))
        self._inbox.start()

    def _handle(self, body: bytes) -> None:
        self.bodies.append(body)
        if self._handled is not None:
            self._handled(body)


@pytest.mark.asyncio
async def test_the_loop_itself_reads_what_arrives(ends: Ends) -> None:
    before = threads("dg-lsp-reader")
    read = Read(ends[0])
    assert threads("dg-lsp-reader") == before
    wanted = [b"%d" % number * 7 for number in range(100)]
    stream = b"".join(map(framed, wanted))
    for start in range(0, len(stream), 11):
        os.write(ends[1], stream[start : start + 11])
        await asyncio.sleep(0)
    os.close(ends[1])
    await asyncio.wait_for(read.ended.wait(), 10)
    assert read.bodies == wanted


@pytest.mark.asyncio
async def test_what_arrived_together_is_handled_before_any_task_begins(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "READ_BYTES", 16)  # the cancel comes with a later read
    begun: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def work() -> None:
        begun.append("work")

    def handled(body: bytes) -> None:
        begun.append(body.decode())
        if body == b"request":
            tasks.append(asyncio.ensure_future(work()))

    read = Read(ends[0], handled)
    os.write(ends[1], framed(b"request") + framed(b"cancel"))
    os.close(ends[1])
    await asyncio.wait_for(read.ended.wait(), 10)
    await asyncio.gather(*tasks)
    assert begun == ["request", "cancel", "work"]


@pytest.mark.asyncio
async def test_reading_stops_while_too_much_waits_and_goes_on_after(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_WAITING", 4)
    monkeypatch.setattr(transport, "TURN_SECONDS", 0.0)  # one message a turn
    wanted = [b"%d" % number for number in range(50)]
    read = Read(ends[0])
    for body in wanted:
        os.write(ends[1], framed(body))
        await asyncio.sleep(0)
    os.close(ends[1])
    await asyncio.wait_for(read.ended.wait(), 10)
    assert read.bodies == wanted


@pytest.mark.asyncio
async def test_a_file_is_read_by_a_thread(tmp_path: Path) -> None:
    file = tmp_path / "messages"
    file.write_bytes(framed(b"one") + framed(b"two"))
    with file.open("rb") as stream:
        read = Read(stream.fileno())
        await asyncio.wait_for(read.ended.wait(), 10)
    assert read.bodies == [b"one", b"two"]


def unused(data: bytes) -> None:
    raise AssertionError("the thread wrote")


def test_what_fits_is_written_before_the_call_returns(ends: Ends) -> None:
    outbox = Outbox(unused, writer_now(ends[1]))
    outbox.write(b"answer")
    outbox.write_newest("key", b"status")
    os.set_blocking(ends[0], False)
    assert os.read(ends[0], 100) == b"answerstatus"
    outbox.flush(5)


def test_an_editor_that_does_not_read_blocks_nobody_and_gets_all_in_order(ends: Ends) -> None:
    outbox = Outbox(lambda data: write_all(ends[1], data), writer_now(ends[1]))
    wanted = [b"%06d" % number * 300 for number in range(2_000)]  # more than any pipe holds
    for data in wanted:
        outbox.write(data)
    outbox.write_newest("key", b"old")
    outbox.write_newest("key", b"new")
    stream = b"".join(wanted) + b"new"
    found = bytearray()
    while len(found) < len(stream):
        found += os.read(ends[0], 1 << 16)
    assert found == stream
    outbox.flush(5)


def write_all(end: int, data: bytes) -> None:
    while data:
        data = data[os.write(end, data) :]


@pytest.mark.asyncio
async def test_a_prefetch_is_prepared_behind_the_answer() -> None:
    pause = asyncio.Event()
    begun: list[str] = []

    async def sleep(seconds: float) -> None:
        assert seconds > 0
        await pause.wait()

    async def work(name: str) -> None:
        begun.append(name)

    prefetch = Prefetch(sleep)
    prefetch.begin(1, lambda: work("first"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (prefetch.running, begun) == (True, [])
    prefetch.begin(2, lambda: work("second"))
    pause.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert (prefetch.running, begun) == (False, ["second"])


@pytest.mark.asyncio
async def test_a_prefetch_waits_until_nobody_types_and_ends_where_it_is_pointless() -> None:
    slept: list[asyncio.Event] = []
    begun: list[str] = []

    async def sleep(seconds: float) -> None:
        slept.append(asyncio.Event())
        await slept[-1].wait()

    async def work() -> None:
        begun.append("work")

    async def turns() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    document = Document.of("file:///project/a.py", 1, "python", "x = \n")
    offer = Offer.at(document, 0, 4, ["1 + 1"])
    prefetch = Prefetch(sleep)
    prefetch.begin(1, work)
    await turns()
    prefetch.follow(offer)  # a key that agrees, right behind
    await turns()
    slept[0].set()
    await turns()
    assert (len(slept), begun) == (2, [])
    slept[1].set()
    await turns()
    assert begun == ["work"]
    prefetch.follow(offer)
    prefetch.begin(2, work)
    await turns()
    prefetch.follow(rejected(offer))
    slept[-1].set()
    await turns()
    assert (len(slept), begun, prefetch.running) == (3, ["work"], False)


@pytest.mark.asyncio
async def test_a_typed_through_answer_tells_nobody_that_the_server_is_busy(
    clients: Clients,
) -> None:
    client = await clients.process("a + b")
    await client.initialize(initializationOptions={"prefetch": False})
    client.open(TEXT)
    line, column = CURSOR
    (item,) = await client.complete(line, column)
    assert item["insertText"] == "a + b"
    # Which the status tells behind the answer.
    await client.until(lambda: not client.said("didChangeStatus")[-1]["busy"])
    told = len(client.received)
    for version, letter in enumerate("a +", 2):
        place = {"line": line, "character": column}
        change = {"range": {"start": place, "end": place}, "text": letter}
        document = {"uri": DOCUMENT, "version": version}
        params: dict[str, Any] = {"textDocument": document, "contentChanges": [change]}
        client.notify("textDocument/didChange", params)
        column += 1
        assert len(await client.complete(line, column)) == 1
    said = [message["method"] for message in client.received[told:] if "method" in message]
    assert "didChangeStatus" not in said
    busy = [m["params"]["busy"] for m in client.received if m.get("method") == "didChangeStatus"]
    assert busy[-2:] == [True, False]  # by the request that the engine was asked for


@pytest.mark.asyncio
async def test_a_change_that_fails_is_told_of_and_the_next_message_is_handled(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> None:
        raise ValueError("the text of somebody")

    client = await clients.ready("a + b")
    monkeypatch.setattr("dg_lsp.methods.did_change.changed", fail)
    client.insert(2, *CURSOR, "x")
    (shown,) = await client.until_said("window/showMessage")
    assert "went wrong" in shown["message"]
    assert "somebody" not in shown["message"]
    assert (await client.command("dg.status"))["inFlight"] == 0


SCRIPT = """
import gc
from dg_lsp.server import create_server, run_stdio

def made():
    server = create_server()

    @server.feature("test/frozen")
    async def frozen(params):
        return gc.get_freeze_count()

    return server

run_stdio(made)
"""


@pytest.mark.asyncio
async def test_what_was_imported_is_not_searched_for_garbage_while_somebody_types() -> None:
    client = await WireClient.run("-c", SCRIPT)
    try:
        await client.initialize()
        frozen = (await client.request("test/frozen", {}))["result"]
    finally:
        await client.close()
    assert frozen > 20_000  # the protocol's types alone
