"""Kind P: an instructed edit is one undo step, and until it is accepted the file is not touched."""

from __future__ import annotations

from typing import Any

import pytest

from tests import server_fixtures
from tests.server_fixtures import TEXT, Clients
from tests.wire_client import DOCUMENT, WireClient

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio
LINE = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 11}}
WISH = {"uri": DOCUMENT, "range": LINE, "instruction": "swap", "preview": True}


async def previewing(clients: Clients, *answers: str) -> tuple[WireClient, int]:
    """A client whose edit is being streamed, and the request's id."""
    client = await clients.process(*answers, drafts=3)
    client.on_request = lambda message: {"applied": True}
    await client.initialize()
    client.open(TEXT)
    asked = client.send("workspace/executeCommand", {"command": "dg.edit", "arguments": [WISH]})
    await client.until_said("test/job")
    return client, asked


async def finished(client: WireClient, asked: int) -> dict[str, Any]:
    while not client.answers(asked):
        client.notify("test/release", {})
        await client.command("dg.status")
    return client.answers(asked)[0]["result"]


def writes(client: WireClient) -> int:
    return len(client.said("workspace/applyEdit"))


async def test_p_accepting_is_one_undo_step(clients: Clients) -> None:
    client, asked = await previewing(clients, "!paced     yield a")
    found = await finished(client, asked)
    assert writes(client) == 0
    result = await client.command("dg.acceptEdit", {"id": found["id"]})
    assert result["applied"], result["reason"]
    (applied,) = client.said("workspace/applyEdit")
    (change,) = applied["edit"]["documentChanges"]
    assert len(change["edits"]) == 1
    assert change["textDocument"]["version"] == 1


async def test_p_discarding_writes_nothing(clients: Clients) -> None:
    client, asked = await previewing(clients, "!paced     yield a")
    found = await finished(client, asked)
    await client.command("dg.discardEdit", {"id": found["id"]})
    assert writes(client) == 0


async def test_p_saving_meanwhile_writes_nothing_of_ours(clients: Clients) -> None:
    client, asked = await previewing(clients, "!paced     yield a")
    said = len(client.received)
    client.notify("textDocument/willSave", {"textDocument": {"uri": DOCUMENT}, "reason": 1})
    waits = {"textDocument": {"uri": DOCUMENT}, "reason": 1}
    await client.request("textDocument/willSaveWaitUntil", waits)
    client.notify("textDocument/didSave", {"textDocument": {"uri": DOCUMENT}, "text": TEXT})
    await client.command("dg.status")
    assert writes(client) == 0
    asked_of_us = [m for m in client.received[said:] if "method" in m and "id" in m]
    assert asked_of_us == []
    assert (await finished(client, asked))["pending"]


@pytest.mark.parametrize(("line", "pending"), [(0, True), (4, True), (1, False)])
async def test_p_typing_outside_moves_the_edit_and_inside_ends_it(
    clients: Clients, line: int, pending: bool
) -> None:
    client, asked = await previewing(clients, "!paced     yield a")
    client.insert(2, line, 0, "#\n" if line != 1 else "x")
    result = await finished(client, asked)
    assert result["pending"] is pending
    accepted = await client.command("dg.acceptEdit", {"id": result["id"]})
    assert accepted["applied"] is pending
    if pending:
        (applied,) = client.said("workspace/applyEdit")
        (change,) = applied["edit"]["documentChanges"]
        moved = 2 if line == 0 else 1
        assert change["edits"][0]["range"]["start"] == {"line": moved, "character": 0}
        assert change["textDocument"]["version"] == 2
    else:
        assert writes(client) == 0
