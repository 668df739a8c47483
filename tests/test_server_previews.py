"""Edits that are shown before they are applied: nothing is written that the user did not accept."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import pytest
from dg_lsp.transport import Outbox

from tests import server_fixtures
from tests.preview_client import Buffer, previewed
from tests.server_fixtures import CANCELLED, Clients, opened
from tests.wire_client import DOCUMENT, WireClient

clients, tiny = server_fixtures.clients, server_fixtures.tiny
pytestmark = pytest.mark.asyncio

BEFORE = "import os\n\n\ndef add(a, b):\n"
OLD = "    total = a + b\n    return total"
AFTER = "\n\n\nprint(add(1, 2))  # 😀\n"
OVER = "There is no such edit any more; it was applied, discarded or dropped."


def takes_edits(client: WireClient) -> None:
    client.on_request = lambda message: {"applied": True}


async def waiting(client: WireClient) -> tuple[Buffer, int, str]:
    """A buffer whose edit the engine works on: the request's id and the edit's."""
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    asked = buffer.edit()
    await client.until_said("test/job")
    return buffer, asked, client.said("dg/editPreview")[-1]["id"]


async def ready(client: WireClient) -> tuple[Buffer, str, str]:
    """A buffer whose edit waits for the user: the edit's id and its text."""
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    answer = await client.answer(buffer.edit())
    assert answer["result"]["pending"] is True, answer
    return buffer, answer["result"]["id"], client.said("dg/editPreview")[-1]["text"]


async def test_drafts_are_shown_and_nothing_is_applied(clients: Clients) -> None:
    client = await clients.ready("!paced return b + a", "return b + a", drafts=4)
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    asked = buffer.edit()
    await client.until_said("dg/editPreview")
    for step in (1, 2):
        client.notify("test/release", {})
        await previewed(client, lambda p, step=step: p["step"] == step)
    client.notify("test/release", {})
    result = (await client.answer(asked))["result"]
    shown = client.said("dg/editPreview")
    assert (shown[0]["step"], shown[0]["text"], shown[0]["done"]) == (0, OLD, None)
    assert [p["step"] for p in shown] == sorted(p["step"] for p in shown)
    assert {p["id"] for p in shown} == {result["id"]}
    assert all(p["range"] == buffer.range and p["version"] == 1 for p in shown)
    assert all(p["uri"] == DOCUMENT for p in shown)
    assert any(p["done"] is None and p["entropy"] > 0 for p in shown)
    assert (shown[-1]["done"], shown[-1]["reason"]) == ("converged", "")
    assert shown[-1]["text"] == "    return b + a"
    assert (result["applied"], result["pending"], result["reason"]) == (False, True, "")
    assert client.said("workspace/applyEdit") == []


async def test_accepting_applies_one_versioned_text_edit(clients: Clients) -> None:
    client = await clients.ready("return b + a")
    takes_edits(client)
    buffer, edit, text = await ready(client)
    result = await client.command("dg.acceptEdit", {"id": edit})
    assert (result["applied"], result["pending"], result["reason"]) == (True, False, "")
    (params,) = client.said("workspace/applyEdit")
    assert buffer.applied(params) == BEFORE + text + AFTER
    again = await client.command("dg.acceptEdit", {"id": edit})
    assert (again["applied"], again["reason"]) == (False, OVER)


async def test_the_change_that_accepting_makes_is_not_taken_for_typing(clients: Clients) -> None:
    client = await clients.ready("return b + a")
    buffer, edit, _ = await ready(client)

    def apply(message: dict[str, Any]) -> Any:
        buffer.type_inside(0, "# applied ")  # what editors send before they answer
        return {"applied": True}

    client.on_request = apply
    told = len(client.said("dg/editPreview"))
    assert (await client.command("dg.acceptEdit", {"id": edit}))["applied"] is True
    assert len(client.said("dg/editPreview")) == told


async def test_discarding_sends_nothing_to_the_buffer(clients: Clients) -> None:
    client = await clients.ready("return b + a")
    takes_edits(client)
    _, edit, _ = await ready(client)
    result = await client.command("dg.discardEdit", {"id": edit})
    assert (result["applied"], result["reason"]) == (False, "")
    last = client.said("dg/editPreview")[-1]
    assert (last["done"], last["reason"]) == ("cancelled", "The edit was discarded.")
    assert (await client.command("dg.acceptEdit", {"id": edit}))["reason"] == OVER
    assert (await client.command("dg.discardEdit", {"id": edit}))["reason"] == OVER
    assert client.said("workspace/applyEdit") == []


async def test_discarding_while_the_engine_works_stops_it(clients: Clients) -> None:
    client = await clients.ready("!wait")
    _, asked, edit = await waiting(client)
    early = await client.command("dg.acceptEdit", {"id": edit})
    assert early["reason"] == "The edit is not finished; wait for it, or discard it."
    await client.command("dg.discardEdit", {"id": edit})
    result = (await client.answer(asked))["result"]
    assert (result["applied"], result["pending"]) == (False, False)
    assert result["reason"] == "The edit was discarded."
    assert (await client.engine())["running"] == 0


ENDS = {
    "typing inside": "The lines were changed, so the edit was dropped.",
    "closing": "The document was closed, so the edit was dropped.",
    "opening again": "The document was closed, so the edit was dropped.",
    "a newer edit": "A newer edit of these lines took its place.",
}


async def end_by(how: str, client: WireClient, buffer: Buffer) -> None:
    if how == "typing inside":
        buffer.type_inside(6, "x")
    elif how == "closing":
        client.notify("textDocument/didClose", {"textDocument": {"uri": DOCUMENT}})
    elif how == "opening again":
        client.open(buffer.text, version=9)
    else:
        buffer.edit(instruction="another")


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("state", ["working", "ready"])
async def test_an_edit_is_dropped_with_its_reason(clients: Clients, how: str, state: str) -> None:
    client = await clients.ready("!wait" if state == "working" else "return 1")
    takes_edits(client)
    asked = None
    if state == "working":
        buffer, asked, edit = await waiting(client)
    else:
        buffer, edit, _ = await ready(client)
    await end_by(how, client, buffer)
    last = await previewed(client, lambda p: p["id"] == edit and p["done"] == "cancelled")
    assert last["reason"] == ENDS[how]
    assert (await client.command("dg.acceptEdit", {"id": edit}))["applied"] is False
    if asked is not None:
        answer = await client.answer(asked)
        assert answer["result"]["reason"] == ENDS[how]
        assert len(client.answers(asked)) == 1
    assert client.said("workspace/applyEdit") == []


async def test_a_cancelled_request_ends_its_edit(clients: Clients) -> None:
    client = await clients.ready("!wait")
    _, asked, edit = await waiting(client)
    client.cancel(asked)
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    last = await previewed(client, lambda p: p["done"] == "cancelled")
    assert (last["id"], last["reason"]) == (edit, "The request was cancelled.")
    assert (await client.command("dg.status"))["inFlight"] == 0


@pytest.mark.parametrize("preview", [True, False])
async def test_closing_the_document_answers_an_edit_in_flight(
    clients: Clients, preview: bool
) -> None:
    client = await clients.ready("!wait")
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    asked = buffer.edit(preview=preview)
    await client.until_said("test/job")
    client.notify("textDocument/didClose", {"textDocument": {"uri": DOCUMENT}})
    result = (await client.answer(asked))["result"]
    assert result["reason"] == "The document was closed, so the edit was dropped."
    assert (await client.engine())["running"] == 0


async def test_an_edit_waits_through_typing_while_the_model_loads(clients: Clients) -> None:
    client = await clients.ready("return 1", load="later")
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    asked = buffer.edit()
    await client.until_said("dg/editPreview")
    buffer.type_inside(6, "x")
    result = (await client.answer(asked))["result"]
    assert result["reason"] == "The lines were changed, so the edit was dropped."


async def test_what_is_typed_right_behind_the_request_moves_its_edit(clients: Clients) -> None:
    client = await clients.ready("return 1")
    takes_edits(client)
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    asked = buffer.edit()
    buffer.type_before(0, 0, "import re\n")  # both are in the pipe before the server reads either
    result = (await client.answer(asked))["result"]
    assert result["pending"], result
    assert client.said("dg/editPreview")[-1]["range"] == buffer.range
    assert (await client.command("dg.acceptEdit", {"id": result["id"]}))["applied"] is True
    (params,) = client.said("workspace/applyEdit")
    assert buffer.applied(params) == buffer.before + "    return 1" + AFTER


async def test_typing_inside_right_behind_the_request_drops_it(clients: Clients) -> None:
    client = await clients.ready("return 1")
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    asked = buffer.edit()
    buffer.type_inside(6, "x")
    result = (await client.answer(asked))["result"]
    assert (result["pending"], result["reason"]) == (False, ENDS["typing inside"])


async def test_a_cancel_sent_with_its_edit_leaves_nothing_behind(clients: Clients) -> None:
    client = await clients.ready("return 1")
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    asked = buffer.edit()
    client.cancel(asked)
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    assert (await client.command("dg.status"))["inFlight"] == 0
    ended = [p for p in client.said("dg/editPreview") if p["done"] == "cancelled"]
    assert len(ended) == min(len(client.said("dg/editPreview")), 1)


async def test_two_edits_of_the_same_lines_sent_at_once_leave_the_newer_one(
    clients: Clients,
) -> None:
    client = await clients.ready("!wait", "return 1")
    buffer = Buffer(client, BEFORE, OLD, AFTER)
    older, newer = buffer.edit(), buffer.edit()
    assert (await client.answer(older))["result"]["reason"] == ENDS["a newer edit"]
    client.notify("test/release", {})
    assert (await client.answer(newer))["result"]["pending"] is True


async def test_an_engine_that_fails_ends_the_edit(clients: Clients) -> None:
    client = await clients.ready("!error")
    result = (await client.answer(Buffer(client, BEFORE, OLD, AFTER).edit()))["result"]
    assert (result["pending"], result["reason"]) == (False, "The script says so.")
    last = client.said("dg/editPreview")[-1]
    assert (last["done"], last["reason"]) == ("error", "The script says so.")


async def test_an_edit_that_the_editor_refuses_may_be_accepted_again(clients: Clients) -> None:
    client = await clients.ready("return 1")
    client.on_request = lambda message: {"applied": False, "failureReason": "read only"}
    _, edit, _ = await ready(client)
    result = await client.command("dg.acceptEdit", {"id": edit})
    assert (result["applied"], result["pending"]) == (False, True)
    assert result["reason"] == "The editor did not apply the edit (read only)."
    takes_edits(client)
    assert (await client.command("dg.acceptEdit", {"id": edit}))["applied"] is True


async def test_typing_above_tells_where_the_lines_are_now(clients: Clients) -> None:
    client = await clients.ready("return 1")
    buffer, edit, text = await ready(client)
    buffer.type_before(0, 0, "import re\n")
    moved = await previewed(client, lambda p: p["version"] == 2)
    assert (moved["id"], moved["text"], moved["range"]) == (edit, text, buffer.range)


async def test_edits_of_other_lines_wait_side_by_side(clients: Clients) -> None:
    client = await clients.ready("return 1")
    buffer, first, text = await ready(client)
    place = {"line": 0, "character": 0}
    second = (await client.answer(buffer.edit(range={"start": place, "end": place})))["result"]

    def apply(message: dict[str, Any]) -> Any:
        buffer.type_before(0, len("import os"), "# two\n# lines")
        return {"applied": True}

    client.on_request = apply
    assert (await client.command("dg.acceptEdit", {"id": second["id"]}))["applied"] is True
    takes_edits(client)
    assert (await client.command("dg.acceptEdit", {"id": first}))["applied"] is True
    params = client.said("workspace/applyEdit")[-1]
    assert buffer.applied(params) == buffer.before + text + AFTER


async def test_shutdown_answers_an_edit_in_flight(clients: Clients) -> None:
    client = await opened(await clients.process("!wait"))
    _, asked, _ = await waiting(client)
    assert (await client.request("shutdown", None))["result"] is None
    assert client.answers(asked)[0]["error"]["code"] == CANCELLED
    client.notify("exit", None)
    assert await client.ended() == 0


@pytest.mark.parametrize("kind", ["in this process", "over standard streams"])
async def test_whatever_is_typed_elsewhere_accepting_edits_the_newest_text(
    clients: Clients, kind: str
) -> None:
    start = clients.start if kind == "in this process" else clients.process
    client = await opened(await start("!wait", drafts=3))
    takes_edits(client)
    rounds = 40 if kind == "in this process" else 10
    for seed in range(rounds):
        chance = random.Random(seed)
        client.notify("test/hold", {})
        buffer = Buffer(client, BEFORE, OLD, AFTER)
        jobs, edits = len(client.said("test/job")), len(client.said("workspace/applyEdit"))
        asked = buffer.edit()
        await client.until_said("test/job", jobs + 1)
        for _ in range(chance.randint(0, 6)):
            buffer.type_somewhere_else(chance)
        client.notify("test/release", {})
        result = (await client.answer(asked))["result"]
        assert result["pending"], (seed, result)
        for _ in range(chance.randint(0, 6)):
            buffer.type_somewhere_else(chance)
        if chance.random() < 0.3:
            await client.command("dg.discardEdit", {"id": result["id"]})
            assert len(client.said("workspace/applyEdit")) == edits, seed
            continue
        accepted = await client.command("dg.acceptEdit", {"id": result["id"]})
        assert accepted["applied"], (seed, accepted)
        last = [p for p in client.said("dg/editPreview") if p["id"] == result["id"]][-1]
        new = buffer.applied(client.said("workspace/applyEdit")[-1])
        assert new == buffer.before + last["text"] + buffer.after, seed


async def test_a_slow_reader_gets_only_the_newest_draft() -> None:
    written: list[bytes] = []
    may_write, writing = threading.Event(), threading.Event()

    def write(data: bytes) -> None:
        writing.set()
        may_write.wait()
        written.append(data)

    outbox = Outbox(write)
    outbox.write(b"first")
    await asyncio.to_thread(writing.wait)
    for number in range(100):
        outbox.write_newest("edit-1", b"draft %d" % number)
        outbox.write_newest("edit-2", b"other %d" % number)
    outbox.write(b"answer")
    may_write.set()
    outbox.flush(5)
    assert written == [b"first", b"draft 99", b"other 99", b"answer"]
