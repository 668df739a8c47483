"""Kind O: no suggestion and no next edit undoes, repeats or gets ahead of what the user does."""

from __future__ import annotations

from typing import Any

import pytest

from tests import server_fixtures
from tests.server_fixtures import CURSOR, TEXT, Clients
from tests.test_next_edit_server import CALLS, Author
from tests.wire_client import DOCUMENT, WireClient

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio
TYPING = 2


async def author(clients: Clients, *answers: str, text: str = CALLS) -> Author:
    client = await clients.process(*answers)
    await client.initialize(initializationOptions={"nextEdit": True, "prefetch": False})
    return Author(client, text)


async def test_o_an_edit_after_which_nothing_is_to_do_is_followed_by_silence(
    clients: Clients,
) -> None:
    writer = await author(clients, "something", text="x = 1\ny = 2\n")
    writer.edit(0, 4, 5, "3")
    assert await writer.next() == []
    assert (await writer.client.engine())["jobs"] == 0


async def test_o_an_edit_and_its_undo_leave_nothing_to_offer(clients: Clients) -> None:
    writer = await author(clients)
    writer.edit(0, 4, 7, "two")
    writer.edit(0, 4, 7, "one")
    assert await writer.next() == []


async def test_o_what_was_taken_and_undone_is_not_offered_again(clients: Clients) -> None:
    writer = await author(clients, text="def f(alpha):\n    b = alpha\n    return alpha\n")
    writer.edit(0, 6, 11, "beta")
    (edit,) = await writer.next()
    writer.apply(edit)
    line = edit["range"]["start"]["line"]
    undone = writer.text.split("\n")[line].index("beta")
    writer.edit(line, undone, undone + 4, "alpha")
    assert all(e["range"]["start"]["line"] != line for e in await writer.next())


@pytest.mark.parametrize("typed", ["be", "bet", "b"])
async def test_o_a_rename_that_is_half_done_never_makes_a_line_what_it_was(
    clients: Clients, typed: str
) -> None:
    writer = await author(clients, text="def f(alpha):\n    b = alpha\n    return alpha\n")
    writer.edit(0, 6, 11, typed)
    for edit in await writer.next():
        assert edit["range"]["start"]["line"] != 0  # the line that was just edited
        assert "alpha" not in edit["text"]


async def typed(client: WireClient, line: int, column: int, text: str, version: int) -> None:
    place = {"line": line, "character": column}
    change: dict[str, Any] = {"range": {"start": place, "end": place}, "text": text}
    document = {"uri": DOCUMENT, "version": version}
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})


async def test_o_a_pause_inside_a_word_shows_the_rest_of_what_was_shown_and_nothing_else(
    clients: Clients,
) -> None:
    client = await clients.process("alpha + beta", "!error")
    await client.initialize(initializationOptions={"prefetch": False})
    client.open(TEXT)
    line, column = CURSOR
    for version, letter in enumerate(["", "al", "pha", " + b"], 1):
        if letter:
            await typed(client, line, column, letter, version)
        column += len(letter)
        (item,) = await client.complete(line, column, TYPING)
        before = "".join(["", "al", "pha", " + b"][:version])
        assert before + item["insertText"] == "alpha + beta"
    assert (await client.engine())["jobs"] == 1  # it neither flickers nor costs anything


async def test_o_what_was_typed_against_does_not_come_back(clients: Clients) -> None:
    client = await clients.process("alpha", "alpha", "alpha")
    await client.initialize(initializationOptions={"prefetch": False})
    client.open(TEXT)
    line, column = CURSOR
    assert len(await client.complete(line, column, TYPING)) == 1
    await typed(client, line, column, "x", 2)
    await client.complete(line, column + 1, TYPING)
    place = {
        "start": {"line": line, "character": column},
        "end": {"line": line, "character": column + 1},
    }
    client.notify(
        "textDocument/didChange",
        {
            "textDocument": {"uri": DOCUMENT, "version": 3},
            "contentChanges": [{"range": place, "text": ""}],
        },
    )
    assert await client.complete(line, column, TYPING) == []
