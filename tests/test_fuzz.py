"""Messages that no editor should send: the server lives, and answers each readable id once."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dg_lsp import transport
from dg_lsp.transport import MAX_MESSAGE_BYTES, MAX_WAITING, Inbox, messages

from bench.load import framing
from bench.load.fuzz import fuzz
from bench.load.messages import Fuzzer
from bench.load.shots import DEEP, FIRST_ID, framed
from tests import server_fixtures
from tests.server_fixtures import INVALID_REQUEST, PARSE_ERROR, Clients

clients, tiny = server_fixtures.clients, server_fixtures.tiny
COUNT = 5_000
SEED = 20
GOOD = b'{"jsonrpc":"2.0","method":"x/good"}'


def test_five_thousand_malformed_messages_leave_a_server_that_answers(tiny: Path) -> None:
    script = json.dumps({"answers": ["a + b", "", "!error", "c"]})
    server = (sys.executable, "-m", "tests.scripted_server", str(tiny), script)
    verdict = asyncio.run(fuzz(server, seed=SEED, count=COUNT))
    assert verdict.faults == []
    assert (verdict.alive, verdict.status) == (True, 0)
    assert verdict.must > COUNT / 3
    assert len(verdict.sent) >= 14


def test_bytes_that_are_nearly_messages_are_read_or_refused_in_both_framings() -> None:
    outcomes, _, faults = framing.run(20_000, SEED)
    assert faults == []
    for often in ("engine: message", "engine: refused", "LSP: 0 messages", "LSP: 2 messages"):
        assert outcomes[often] > 500


def test_a_reader_that_raises_anything_else_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "unpack_reply", lambda body: {}[body])
    _, _, faults = framing.run(100, SEED)
    assert len(faults) > 10
    assert "KeyError" in faults[0]


def test_the_same_seed_gives_the_same_messages() -> None:
    one, other, third = Fuzzer(1), Fuzzer(1), Fuzzer(2)
    first = [one.shot() for _ in range(200)]
    assert first == [other.shot() for _ in range(200)]
    assert first != [third.shot() for _ in range(200)]


def test_no_id_is_used_twice() -> None:
    fuzzer = Fuzzer(3)
    ids = [shot.must for _ in range(2000) if (shot := fuzzer.shot()).must is not None]
    assert len(set(ids)) == len(ids)
    assert all(isinstance(i, str) or i >= FIRST_ID for i in ids)


def bodies(stream: bytes) -> list[bytes]:
    """What is read from a stream that comes in small pieces."""
    pieces: Iterator[bytes] = (stream[i : i + 700] for i in range(0, len(stream), 700))
    return list(messages(lambda size: next(pieces, b"")))


HEADERS = {
    "no header at all": b"",
    "no length": b"Content-Type: x",
    "no digits": b"Content-Length: many",
    "a sign": b"Content-Length: -5",
    "two numbers": b"Content-Length: 3 4",
    "more digits than a number may have": b"Content-Length: " + b"9" * 5000,
    "more bytes than are waited for": b"Content-Length: %d" % (MAX_MESSAGE_BYTES + 1),
    "too short": b"Content-Length: 3",
    "a long one": b"X" * 200_000,
}


@pytest.mark.parametrize("case", HEADERS)
def test_the_next_message_is_found_behind_a_bad_header(case: str) -> None:
    stream = HEADERS[case] + b"\r\n\r\n" + b'{"lost": true}' + framed(GOOD) + framed(GOOD)
    assert bodies(stream)[-2:] == [GOOD, GOOD]


@pytest.mark.parametrize(
    "header",
    [
        b"content-length:%d",
        b"CONTENT-LENGTH:\t%d  ",
        b"Content-Length: 00%d",
        b"Content-Type: x\r\nContent-Length: %d",
        b"Content-Length: %d\r\nContent-Type: x",
    ],
)
def test_an_unusual_header_is_read(header: bytes) -> None:
    assert bodies(framed(GOOD, header % len(GOOD))) == [GOOD]


def test_endless_bytes_without_a_header_are_not_kept() -> None:
    sizes = iter([b"x" * 65_536] * 64 + [b"\r\n\r\n" + framed(GOOD)])
    assert list(messages(lambda size: next(sizes, b""))) == [GOOD]


def test_a_client_that_outruns_the_server_does_not_keep_the_loop() -> None:
    async def run() -> int:
        handled = 0
        sent = itertools.repeat(framed(GOOD), 3 * MAX_WAITING)
        ended = asyncio.Event()

        def handle(body: bytes) -> None:
            nonlocal handled
            handled += 1

        Inbox(lambda size: next(sent, b""), handle, ended.set).start()
        turns = 0
        while handled < 3 * MAX_WAITING:
            await asyncio.sleep(0)
            turns += handled > 0
        await ended.wait()
        return turns

    assert asyncio.run(run()) > 3


def test_messages_that_arrived_are_handled_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "TURN_SECONDS", 60)  # on a busy machine too

    async def run() -> tuple[int, int]:
        handled = 0
        together = iter([framed(GOOD) * 20])
        arrived = threading.Event()
        ended = asyncio.Event()

        def read(size: int) -> bytes:
            # Asked again, the reader has handed over what it had.
            data = next(together, b"")
            if not data:
                arrived.set()
            return data

        def handle(body: bytes) -> None:
            nonlocal handled
            handled += 1

        Inbox(read, handle, ended.set).start()
        assert arrived.wait(10), "the loop stands still while the thread reads"
        before = handled
        await asyncio.sleep(0)
        turned = handled
        await ended.wait()
        return before, turned

    assert asyncio.run(run()) == (0, 20)


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "method is a list": ({"method": []}, INVALID_REQUEST),
    "method is a number": ({"method": 1.5, "params": {}}, INVALID_REQUEST),
    "a notification with an id": ({"method": "initialized", "params": {}}, INVALID_REQUEST),
    "another one": ({"method": "$/setTrace", "params": {"value": "off"}}, INVALID_REQUEST),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("case", REFUSED)
async def test_a_readable_id_is_answered_whatever_stands_around_it(
    case: str, clients: Clients
) -> None:
    client = await clients.ready()
    fields, code = REFUSED[case]
    client.write({"jsonrpc": "2.0", "id": 77_001, **fields})
    assert (await client.answer(77_001))["error"]["code"] == code
    await client.command("dg.status")
    assert len(client.answers(77_001)) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("deep", [b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP])
async def test_what_is_nested_too_deep_is_refused(deep: bytes, clients: Clients) -> None:
    client = await clients.ready()
    body = b'{"jsonrpc":"2.0","id":77002,"method":"textDocument/codeAction","params":%b}'
    client.write_raw(body % deep)
    await client.command("dg.status")
    refused = [m for m in client.received if m.get("error", {}).get("code") == PARSE_ERROR]
    assert len(refused) + len(client.answers(77_002)) == 1
