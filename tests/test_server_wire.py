"""The server by its messages: every request is answered once, whatever the client does."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests import server_fixtures
from tests.server_fixtures import (
    CANCELLED,
    CURSOR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    PARSE_ERROR,
    TEXT,
    Clients,
)
from tests.wire_client import DOCUMENT, WireClient

clients, tiny = server_fixtures.clients, server_fixtures.tiny
pytestmark = pytest.mark.asyncio


def whole(text: str) -> dict[str, Any]:
    """Parameters that replace the document's text."""
    return {
        "textDocument": {"uri": DOCUMENT, "version": 2},
        "contentChanges": [{"text": text}],
    }


async def idle(client: WireClient) -> dict[str, Any]:
    status = await client.command("dg.status")
    return {"inFlight": status["inFlight"], "running": (await client.engine())["running"]}


async def test_what_the_server_can_do_is_advertised(clients: Clients) -> None:
    client = await clients.start()
    result = await client.initialize()
    assert result["capabilities"]["inlineCompletionProvider"] == {}
    assert result["capabilities"]["textDocumentSync"]["change"] == 2
    assert result["capabilities"]["textDocumentSync"]["openClose"] is True
    assert set(result["capabilities"]["executeCommandProvider"]["commands"]) >= {
        "dg.acceptEdit",
        "dg.accepted",
        "dg.completeBlock",
        "dg.discardEdit",
        "dg.edit",
        "dg.fillHoles",
        "dg.status",
        "dg.writeDocstring",
    }
    assert result["capabilities"]["codeActionProvider"]["codeActionKinds"]


@pytest.mark.parametrize(
    ("offered", "chosen", "character"),
    [
        (["utf-16"], "utf-16", 7),
        (["utf-8", "utf-16"], "utf-8", 9),
        (["utf-32", "utf-8", "utf-16"], "utf-32", 6),
        (None, "utf-16", 7),
        (["utf-7"], "utf-16", 7),
    ],
)
async def test_positions_are_in_the_encoding_that_the_client_prefers(
    clients: Clients, offered: list[str] | None, chosen: str, character: int
) -> None:
    client = await clients.start("1")
    result = await client.initialize(capabilities={"general": {"positionEncodings": offered}})
    assert result["capabilities"]["positionEncoding"] == chosen
    client.open("'😀' + \n")
    items = await client.complete(0, character)
    place = {"line": 0, "character": character}
    assert items[0]["range"] == {"start": place, "end": place}
    assert items[0]["insertText"] == "1"


async def test_an_item_says_when_it_is_taken(clients: Clients) -> None:
    client = await clients.ready("a + b")
    (item,) = await client.complete(*CURSOR)
    assert item["insertText"] == "a + b"
    await client.command(item["command"]["command"], item["command"]["arguments"][0])
    assert (await client.command("dg.status"))["accepted"] == 1


@pytest.mark.parametrize("kind", [0, 1, 2, 7])
async def test_any_trigger_kind_is_answered(clients: Clients, kind: int) -> None:
    client = await clients.ready("a + b")
    assert (await client.complete(*CURSOR, kind=kind))[0]["insertText"] == "a + b"


MALFORMED: dict[str, tuple[str, Any]] = {
    "no parameters": ("textDocument/inlineCompletion", None),
    "no document": ("textDocument/inlineCompletion", {"position": {"line": 0, "character": 0}}),
    "a word for a line": (
        "textDocument/inlineCompletion",
        {"textDocument": {"uri": DOCUMENT}, "position": {"line": "one", "character": 0}},
    ),
    "a list": ("textDocument/inlineCompletion", [1, 2]),
    "an unknown command": ("workspace/executeCommand", {"command": "dg.nonsense"}),
    "a command without its argument": ("workspace/executeCommand", {"command": "dg.edit"}),
    "a code action without a range": (
        "textDocument/codeAction",
        {"textDocument": {"uri": DOCUMENT}},
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_malformed_parameters_get_an_error_for_their_id(clients: Clients, case: str) -> None:
    client = await clients.ready("a + b")
    answer = await client.request(*MALFORMED[case])
    assert answer["error"]["code"] == INVALID_PARAMS
    assert len(await client.complete(*CURSOR)) == 1


async def test_what_is_wrong_with_a_command_is_said_in_one_sentence(clients: Clients) -> None:
    client = await clients.ready("a + b")
    unknown = await client.request("workspace/executeCommand", {"command": "dg.nonsense"})
    assert unknown["error"]["message"].startswith("There is no command 'dg.nonsense'; known are ")
    wrong = {"command": "dg.edit", "arguments": [{"uri": 1}]}
    malformed = (await client.request("workspace/executeCommand", wrong))["error"]["message"]
    assert malformed.startswith("The argument of dg.edit is malformed: Expected `str`, got `int`")
    assert malformed.endswith("`$.uri`.")


async def test_a_malformed_initialize_gets_an_error_and_may_be_tried_again(
    clients: Clients,
) -> None:
    client = await clients.start("a + b")
    answer = await client.request("initialize", {"capabilities": 3})
    assert answer["error"]["code"] == INVALID_PARAMS
    await client.initialize()


@pytest.mark.parametrize(
    "body",
    [b"{", b"", b"[]", b'"text"', b"\xff\xfe", b'{"id": {}, "method": "x"}', b'{"method": 3}'],
)
async def test_bytes_that_are_no_message_leave_the_server_running(
    clients: Clients, body: bytes
) -> None:
    client = await clients.ready("a + b")
    client.write_raw(body)
    assert len(await client.complete(*CURSOR)) == 1
    refused = [m for m in client.received if m.get("error", {}).get("code") == PARSE_ERROR]
    assert len(refused) == 1


async def test_a_header_without_a_length_is_skipped(clients: Clients) -> None:
    client = await clients.ready("a + b")
    client.write_bytes(b"Content-Type: nonsense\r\n\r\n")
    assert len(await client.complete(*CURSOR)) == 1


async def test_an_unknown_method_is_an_error_and_an_unknown_notification_is_ignored(
    clients: Clients,
) -> None:
    client = await clients.ready()
    client.notify("nonsense/happened", {})
    answer = await client.request("nonsense/please", {})
    assert answer["error"]["code"] == METHOD_NOT_FOUND


async def test_requests_out_of_turn_are_refused(clients: Clients) -> None:
    client = await clients.start()
    early = await client.request("workspace/executeCommand", {"command": "dg.status"})
    assert early["error"]["code"] == NOT_INITIALIZED
    await client.initialize()
    again = await client.request("initialize", {"capabilities": {}})
    assert again["error"]["code"] == INVALID_REQUEST
    await client.request("shutdown", None)
    late = await client.request("workspace/executeCommand", {"command": "dg.status"})
    assert late["error"]["code"] == INVALID_REQUEST


async def test_half_an_emoji_in_a_change_does_not_lose_the_document(clients: Clients) -> None:
    client = await clients.ready("a + b")
    client.insert(2, 0, 0, "# \ud83d\n")
    (item,) = await client.complete(2, 11)
    assert item["insertText"] == "a + b"


async def test_a_cancel_is_answered_and_stops_the_engine(clients: Clients) -> None:
    client = await clients.ready("!wait")
    asked = client.ask_completion(*CURSOR)
    await client.until_said("test/job")
    client.cancel(asked)
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    assert await idle(client) == {"inFlight": 0, "running": 0}


async def test_a_cancel_sent_with_its_request_overtakes_it(clients: Clients) -> None:
    client = await clients.ready("!wait")
    asked = client.ask_completion(*CURSOR)
    client.cancel(asked)  # both are in the pipe before the server reads either
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    assert (await client.engine())["running"] == 0


async def test_a_newer_request_for_the_document_ends_the_older_one_empty(clients: Clients) -> None:
    client = await clients.ready("!wait", "a + b")
    older = client.ask_completion(*CURSOR)
    await client.until_said("test/job")
    newer = await client.complete(*CURSOR)
    assert [item["insertText"] for item in newer] == ["a + b"]
    assert (await client.answer(older))["result"] == {"items": []}
    assert (await client.engine())["cancelled"] == 1


async def test_requests_for_different_documents_do_not_end_each_other(clients: Clients) -> None:
    client = await clients.ready("!wait", "a + b")
    first = client.ask_completion(*CURSOR)
    await client.until_said("test/job")
    other = "file:///project/other.py"
    client.open(TEXT, uri=other)
    second = client.ask_completion(*CURSOR, uri=other)
    assert (await client.answer(second))["result"]["items"]
    client.notify("test/release", {})
    assert (await client.answer(first))["result"]["items"][0]["insertText"] == "released"


async def test_a_storm_of_cancelled_requests_is_answered_one_to_one(clients: Clients) -> None:
    chance = random.Random(7)
    client = await clients.ready("!wait", *["a + b", "!wait"] * 60, "a + b")
    asked: list[int] = []
    for _ in range(100):
        asked.append(client.ask_completion(*CURSOR, kind=chance.choice([1, 2])))
        if chance.random() < 0.8:
            client.cancel(chance.choice(asked))
        if chance.random() < 0.3:
            # Lets the server work on what it has before it gets more.
            await client.command("dg.status")
    for message_id in asked:
        client.cancel(message_id)
    last = await client.complete(*CURSOR)
    assert [item["insertText"] for item in last] in (["a + b"], ["released"], [])
    await client.until(lambda: all(client.answers(message_id) for message_id in asked))
    assert [len(client.answers(message_id)) for message_id in asked] == [1] * 100
    assert await idle(client) == {"inFlight": 0, "running": 0}


STALE: dict[str, tuple[list[tuple[int, int, int, str]], list[str], int]] = {
    # edits while the request is in flight; texts and their column
    "nothing": ([], ["released"], 11),
    "the same text typed": ([(2, 1, 11, "rel")], ["eased"], 14),
    "other text typed": ([(2, 1, 11, "x")], [], 0),
    "the whole text typed": ([(2, 1, 11, "released")], [], 0),
    "typed letter by letter": ([(2, 1, 11, "r"), (3, 1, 12, "e")], ["leased"], 13),
    "a line above": ([(2, 0, 0, "import os\n")], [], 0),
    "a letter elsewhere": ([(2, 4, 0, "x")], [], 0),
}


@pytest.mark.parametrize("case", STALE)
async def test_an_answer_fits_the_newest_version_or_is_dropped(clients: Clients, case: str) -> None:
    edits, texts, column = STALE[case]
    client = await clients.ready("!wait")
    asked = client.ask_completion(*CURSOR)
    await client.until_said("test/job")
    for edit in edits:
        client.insert(*edit)
    client.notify("test/release", {})
    items = (await client.answer(asked))["result"]["items"]
    assert [item["insertText"] for item in items] == texts
    assert [item["range"]["start"]["character"] for item in items] == [column] * len(texts)


async def test_an_answer_for_a_closed_document_is_dropped(clients: Clients) -> None:
    client = await clients.ready("!wait")
    asked = client.ask_completion(*CURSOR)
    await client.until_said("test/job")
    client.notify("textDocument/didClose", {"textDocument": {"uri": DOCUMENT}})
    client.notify("test/release", {})
    assert (await client.answer(asked))["result"] == {"items": []}


async def test_a_request_that_names_an_older_version_is_answered_empty(clients: Clients) -> None:
    client = await clients.ready("a + b")
    asked = client.ask_completion(*CURSOR, version=0)
    assert (await client.answer(asked))["result"] == {"items": []}
    current = client.ask_completion(*CURSOR, version=1)
    assert len((await client.answer(current))["result"]["items"]) == 1


async def test_the_answer_uses_the_line_endings_of_the_document(clients: Clients) -> None:
    client = await clients.ready("x = 1\n    return x")
    client.notify("textDocument/didChange", whole("def f():\r\n    \r\n\r\nf()\r\n"))
    (item,) = await client.complete(1, 4)
    assert item["insertText"] == "x = 1\r\n    return x"


async def test_an_edit_is_applied_to_the_version_that_it_was_made_for(clients: Clients) -> None:
    client = await clients.ready("return b")
    client.on_request = lambda message: {"applied": True}
    lines = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}
    result = await client.command(
        "dg.edit", {"uri": DOCUMENT, "range": lines, "instruction": "shorten", "version": 1}
    )
    assert (result["applied"], result["reason"]) == (True, "")
    (applied,) = client.said("workspace/applyEdit")
    (change,) = applied["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": DOCUMENT, "version": 1}
    (edit,) = change["edits"]
    assert edit["range"]["start"] == {"line": 1, "character": 0}
    assert edit["range"]["end"]["line"] == 1
    assert edit["newText"].startswith("    return")


EDIT = {
    "uri": DOCUMENT,
    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}},
    "instruction": "shorten",
}


async def test_an_edit_of_a_document_that_changes_meanwhile_is_not_applied(
    clients: Clients,
) -> None:
    client = await clients.ready("!wait")
    asked = client.send("workspace/executeCommand", {"command": "dg.edit", "arguments": [EDIT]})
    await client.until_said("test/job")
    client.insert(2, 4, 0, "x")
    client.notify("test/release", {})
    result = (await client.answer(asked))["result"]
    assert result["applied"] is False
    assert result["reason"].startswith("The document changed meanwhile")
    assert client.said("workspace/applyEdit") == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 9}, "The document changed since the lines were chosen; choose them again."),
        ({"instruction": " "}, "The instruction is empty; say what to change."),
        ({"uri": "file:///other.py"}, "The document is not open."),
    ],
)
async def test_an_edit_that_cannot_be_made_says_why(
    clients: Clients, change: dict[str, Any], reason: str
) -> None:
    client = await clients.ready("x")
    result = await client.command("dg.edit", {**EDIT, **change})
    assert (result["applied"], result["reason"]) == (False, reason)


async def test_an_editor_that_refuses_an_edit_is_quoted(clients: Clients) -> None:
    client = await clients.ready("add(a)")
    client.on_request = lambda message: {"applied": False, "failureReason": "read only"}
    result = await client.command("dg.edit", EDIT)
    assert result["reason"] == "The editor did not apply the edit (read only)."


@pytest.mark.parametrize("answer", [None, [], {}, 3])
async def test_an_editor_that_answers_an_edit_with_something_else_is_not_waited_for(
    clients: Clients, answer: Any
) -> None:
    client = await clients.ready("add(a)")
    client.on_request = lambda message: answer
    result = await client.command("dg.edit", EDIT)
    assert not result["applied"]
    assert result["reason"].startswith("The editor did not say whether it applied the edit")


async def test_code_actions_offer_an_edit_and_the_block_at_the_cursor(clients: Clients) -> None:
    client = await clients.ready("return 1")
    client.notify("textDocument/didChange", whole("def f():\n    \n\nf()\n"))
    client.on_request = lambda message: {"applied": True}
    place = {"line": 1, "character": 4}
    ask = {
        "textDocument": {"uri": DOCUMENT},
        "range": {"start": place, "end": place},
        "context": {"diagnostics": []},
    }
    actions = (await client.request("textDocument/codeAction", ask))["result"]
    assert [action["title"] for action in actions] == [
        "Edit with instruction…",
        "Complete the block",
    ]
    block = actions[1]["command"]
    result = await client.command(block["command"], block["arguments"][0])
    assert result["applied"] is True
    (applied,) = client.said("workspace/applyEdit")
    assert applied["edit"]["documentChanges"][0]["edits"][0]["newText"] == "return 1"
    only = {**ask, "context": {"diagnostics": [], "only": ["refactor"]}}
    actions = (await client.request("textDocument/codeAction", only))["result"]
    assert [action["title"] for action in actions] == ["Edit with instruction…"]


async def test_while_the_model_loads_progress_runs_and_requests_wait(clients: Clients) -> None:
    client = await clients.ready("a + b", load="later")
    asked = client.ask_completion(*CURSOR, kind=1)
    await client.until_said("$/progress")
    statuses = await client.until_said("didChangeStatus")
    assert statuses[0]["kind"] == "Inactive"
    assert statuses[0]["busy"] is True
    assert "loading" in statuses[0]["message"]
    client.notify("test/loaded", {})
    assert len((await client.answer(asked))["result"]["items"]) == 1
    begin, end = (p["value"]["kind"] for p in await client.until_said("$/progress", 2))
    assert (begin, end) == ("begin", "end")
    await client.until(lambda: client.said("didChangeStatus")[-1]["kind"] == "Normal")


async def test_a_request_does_not_wait_for_the_model_past_its_deadline(clients: Clients) -> None:
    client = await clients.start(load="later")
    await client.initialize(initializationOptions={"automaticDeadlineMs": 50})
    client.open(TEXT)
    assert await client.complete(*CURSOR) == []
    assert (await client.command("dg.status"))["model"] == "loading"


async def test_a_model_that_cannot_load_is_a_status_with_the_next_step(clients: Clients) -> None:
    sentence = "No model named 'x' here; put its folder there."
    client = await clients.ready(load=sentence)
    assert await client.complete(*CURSOR) == []
    await client.until(lambda: client.said("didChangeStatus")[-1]["kind"] == "Error")
    assert client.said("didChangeStatus")[-1]["message"] == sentence
    (shown,) = await client.until_said("window/showMessage")
    assert shown["message"] == sentence


async def test_an_engine_error_is_a_status_until_the_next_good_answer(clients: Clients) -> None:
    client = await clients.ready("!error", "a + b")
    assert await client.complete(*CURSOR) == []
    status = await client.command("dg.status")
    assert (status["kind"], status["message"]) == ("Warning", "The script says so.")
    assert len(await client.complete(*CURSOR)) == 1
    assert (await client.command("dg.status"))["kind"] == "Normal"


async def test_new_limits_count_at_once_and_need_no_new_engine(clients: Clients) -> None:
    client = await clients.ready("a + b")
    await client.complete(*CURSOR)
    settings = {"dg": {"maxLineTokens": 2}}
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    await client.complete(*CURSOR)
    assert (await client.engine())["widths"] == [2]
    assert not (await client.engine())["closed"]


async def test_another_number_of_threads_needs_a_new_engine(clients: Clients) -> None:
    client = await clients.ready("a + b")
    await client.complete(*CURSOR)
    client.notify("workspace/didChangeConfiguration", {"settings": {"dg": {"threads": 1}}})
    await client.until(lambda: len(client.said("$/progress")) == 4)
    assert (await client.engine())["closed"]


async def test_settings_are_asked_for_where_the_client_only_says_that_they_changed(
    clients: Clients,
) -> None:
    client = await clients.start("a + b")
    client.on_request = lambda message: [{"threads": "two"}]
    await client.initialize(capabilities={"workspace": {"configuration": True}})
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    (shown,) = await client.until_said("window/showMessage")
    assert shown["message"].startswith('The setting "threads" takes')


async def test_a_wrong_setting_is_shown_and_the_others_count(clients: Clients) -> None:
    client = await clients.start("a + b")
    await client.initialize(initializationOptions={"threads": "two", "maxLineTokens": 4})
    (shown,) = await client.until_said("window/showMessage")
    assert shown["message"] == (
        'The setting "threads" takes a whole number from 1 to 1024, not "two".'
    )


async def test_a_client_that_says_initialized_twice_gets_one_engine(clients: Clients) -> None:
    client = await clients.ready("a + b")
    await client.until(lambda: len(client.said("$/progress")) == 2)  # one loading, begun and ended
    client.notify("initialized", {})
    assert len(await client.complete(*CURSOR)) == 1
    assert not (await client.engine())["closed"]
    assert len(client.said("$/progress")) == 2


async def test_a_cancel_of_what_is_no_id_is_dropped(clients: Clients) -> None:
    client = await clients.ready("a + b")
    for wrong in ([1], {"a": 1}, None):
        client.notify("$/cancelRequest", {"id": wrong})
    assert len(await client.complete(*CURSOR)) == 1
