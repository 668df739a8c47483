"""What a keystroke costs: jobs of the engine, counted at the real server while somebody types."""

from __future__ import annotations

from typing import Any

import pytest

from tests import server_fixtures
from tests.server_fixtures import CURSOR, TEXT, Clients, opened
from tests.wire_client import DOCUMENT, WireClient

clients, tiny = server_fixtures.clients, server_fixtures.tiny
pytestmark = pytest.mark.asyncio
INVOKED, AUTOMATIC = 1, 2


class Typist:
    """Someone who types at one place of the open document, and looks at what is suggested."""

    def __init__(self, client: WireClient, line: int = CURSOR[0], column: int = CURSOR[1]) -> None:
        self.client = client
        self.line, self.column = line, column
        self.version = 1
        self.items: list[dict[str, Any]] = []

    def edit(self, line: int, start: int, end: int, text: str) -> None:
        """Replace a part of one line."""
        self.version += 1
        place = {
            "start": {"line": line, "character": start},
            "end": {"line": line, "character": end},
        }
        self.client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": DOCUMENT, "version": self.version},
                "contentChanges": [{"range": place, "text": text}],
            },
        )

    def type(self, text: str, closer: str = "") -> None:
        """Type at the cursor; an editor may add a closer behind it."""
        self.edit(self.line, self.column, self.column, text + closer)
        self.column += len(text)

    def erase(self, count: int = 1) -> None:
        """Backspace."""
        self.edit(self.line, self.column - count, self.column, "")
        self.column -= count

    async def look(self, kind: int = AUTOMATIC) -> list[str]:
        """What is suggested at the cursor."""
        self.items = await self.client.complete(self.line, self.column, kind)
        return [item["insertText"] for item in self.items]

    async def jobs(self) -> int:
        """Jobs of the engine so far, prefetches apart."""
        return (await self.client.engine())["jobs"]


async def test_typing_along_costs_one_job(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x"))
    seen = [await typist.look()]
    for letter in "a + ":
        typist.type(letter)
        seen.append(await typist.look())
    assert seen == [["a + b"], [" + b"], ["+ b"], [" b"], ["b"]]
    assert await typist.jobs() == 1


async def test_typing_along_costs_one_job_in_a_process_of_its_own(clients: Clients) -> None:
    typist = Typist(await opened(await clients.process("a + b", "x")))
    await typist.look()
    typist.type("a +")
    assert await typist.look() == [" b"]
    assert await typist.jobs() == 1


async def test_the_item_stands_at_the_cursor(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b"))
    await typist.look()
    typist.type("a ")
    await typist.look()
    place = {"line": 1, "character": 13}
    assert typist.items[0]["range"] == {"start": place, "end": place}
    (argument,) = typist.items[0]["command"]["arguments"]
    assert argument["version"] == 2


async def test_a_letter_that_contradicts_costs_a_job(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "(b)", "a + b"))
    await typist.look()
    typist.type("c")
    assert await typist.look() == ["(b)"]
    assert await typist.jobs() == 2


async def test_what_was_typed_against_does_not_come_back(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x"))
    await typist.look()
    typist.type("c")
    typist.erase()
    assert await typist.look() == []
    typist.type(" ")
    assert await typist.look() == ["x"]


async def test_deleting_back_to_the_place_costs_nothing(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x"))
    await typist.look()
    typist.type("a +")
    typist.erase(2)
    assert await typist.look() == [" + b"]
    typist.erase()
    assert await typist.look() == ["a + b"]
    assert await typist.jobs() == 1


async def test_closers_that_the_editor_adds_are_not_said_twice(clients: Clients) -> None:
    typist = Typist(await clients.ready("max(a, b)", "x"))
    await typist.look()
    typist.type("max")
    typist.type("(", ")")
    assert await typist.look() == ["a, b"]
    typist.type("a")
    assert await typist.look() == [", b"]
    assert await typist.jobs() == 1


async def test_several_lines_are_typed_through(clients: Clients) -> None:
    client = await clients.start("a = 1\n    return a", "x")
    await client.initialize()
    client.open("def f():\n    \n\nf()\n")
    typist = Typist(client, 1, 4)
    assert await typist.look() == ["a = 1\n    return a"]
    typist.type("a = 1\n    re")
    typist.line, typist.column = 2, 6
    assert await typist.look() == ["turn a"]
    assert await typist.jobs() == 1


async def test_a_place_left_and_found_again_is_not_offered_what_was_left(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "1"))
    await typist.look()
    await typist.client.complete(4, 17)
    assert await typist.look() == []
    assert await typist.jobs() == 2


async def test_who_asks_gets_what_was_rejected(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b"))
    await typist.look()
    typist.type("c")
    typist.erase()
    assert await typist.look() == []
    assert await typist.look(INVOKED) == ["a + b"]


async def test_an_offer_that_was_not_drawn_is_found_again_without_the_engine(
    clients: Clients,
) -> None:
    typist = Typist(await clients.ready("a + b", "1", "x"))
    client = typist.client
    await client.complete(4, 17)
    client.notify("textDocument/didShowCompletion", {"item": {"command": {"arguments": [1]}}})
    await typist.look()
    await client.complete(4, 0)
    jobs = await typist.jobs()
    assert await typist.look() == ["1"]
    assert await typist.jobs() == jobs


async def test_the_same_text_again_is_answered_by_memory(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x", "y"))
    await typist.look()
    typist.erase()
    await typist.look()
    typist.type(" ")
    assert await typist.look() == ["a + b"]
    assert await typist.jobs() == 2


async def test_an_edit_elsewhere_and_its_undo_keep_what_was_typed_along(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x"))
    await typist.look()
    typist.type("a ")
    typist.edit(4, 0, 0, "#")
    typist.edit(4, 0, 1, "")
    assert await typist.look() == ["+ b"]
    assert await typist.jobs() == 1


async def test_an_edit_elsewhere_that_the_model_sees_costs_a_job(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "- b"))
    await typist.look()
    typist.edit(4, 0, 0, "#")
    typist.type("a ")
    assert await typist.look() == ["- b"]
    assert await typist.jobs() == 2


async def test_a_job_after_an_edit_elsewhere_goes_on_from_what_was_shown(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "- b"))
    await typist.look()
    assert (await typist.client.engine())["roles"].keys() == {"HOLE", "PIN"}
    typist.edit(4, 0, 0, "#")
    typist.type("a ")
    assert await typist.look() == ["- b"]
    engine = await typist.client.engine()
    assert engine["roles"].keys() == {"SEED", "PIN"}
    assert engine["widths"] == []


async def test_alternatives_are_typed_through(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b"))
    assert await typist.look(INVOKED) == ["a + b"]
    typist.type("a")
    assert await typist.look(INVOKED) == [" + b"]
    assert await typist.look(AUTOMATIC) == [" + b"]
    assert await typist.jobs() == 1


async def test_a_part_that_was_taken_leaves_the_rest(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x"))
    await typist.look()
    item = typist.items[0]
    typist.type("a ")
    typist.client.notify(
        "textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 2}
    )
    assert await typist.look() == ["+ b"]
    assert await typist.jobs() == 1


@pytest.mark.parametrize("item", [{}, {"command": {}}, {"command": {"arguments": ["x"]}}])
async def test_signals_that_name_no_offer_are_ignored(clients: Clients, item: Any) -> None:
    typist = Typist(await clients.ready("a + b"))
    await typist.look()
    typist.client.notify("textDocument/didShowCompletion", {"item": item})
    typist.client.notify("textDocument/didPartiallyAcceptCompletion", {"item": item})
    assert await typist.look() == ["a + b"]


async def test_what_comes_behind_a_suggestion_is_ready_when_it_is_taken(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x", ahead=[" + c"]))
    await typist.look()
    await typist.client.until_said("test/prefetch")
    typist.type("a + b")
    assert await typist.look() == [" + c"]
    assert await typist.jobs() == 1


async def test_a_request_waits_for_what_is_being_prepared(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x", ahead=["!wait"]))
    await typist.look()
    await typist.client.until_said("test/prefetch")
    typist.type("a + b")
    asked = typist.client.ask_completion(typist.line, typist.column)
    assert await typist.jobs() == 1
    typist.client.notify("test/release", {})
    (item,) = (await typist.client.answer(asked))["result"]["items"]
    assert item["insertText"] == "released"


OTHER_EDITS = {
    "against it": (1, 11, 11, "c"),
    "elsewhere": (4, 0, 0, "#"),
    "before it": (1, 10, 11, ""),
}


@pytest.mark.parametrize("case", OTHER_EDITS)
async def test_any_other_edit_stops_what_is_being_prepared(clients: Clients, case: str) -> None:
    typist = Typist(await clients.ready("a + b", "x", ahead=["!wait"]))
    await typist.look()
    await typist.client.until_said("test/prefetch")
    typist.edit(*OTHER_EDITS[case])
    await typist.client.command("dg.status")
    engine = await typist.client.engine()
    assert (engine["running"], engine["prefetches"]) == (0, 1)


async def test_nothing_is_prepared_where_the_user_does_not_want_it(clients: Clients) -> None:
    client = await clients.start("a + b", ahead=["x"])
    await client.initialize(initializationOptions={"prefetch": False})
    client.open(TEXT)
    typist = Typist(client)
    await typist.look()
    typist.type("a")
    await typist.look()
    assert (await client.engine())["prefetches"] == 0


async def test_a_text_that_was_taken_and_undone_does_not_come_back(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x"))
    await typist.look()
    command = typist.items[0]["command"]
    typist.type("a + b")
    await typist.client.command(command["command"], command["arguments"][0])
    typist.erase(5)
    assert await typist.look() == []


async def test_new_settings_forget_what_was_shown(clients: Clients) -> None:
    typist = Typist(await clients.ready("a + b", "x"))
    await typist.look()
    typist.client.notify("workspace/didChangeConfiguration", {"settings": {"maxLineTokens": 3}})
    assert await typist.look() == ["x"]
    assert await typist.jobs() == 2


async def test_a_letter_read_together_with_the_request_before_it_is_not_doubled(
    clients: Clients,
) -> None:
    typist = Typist(await clients.ready("a + b"))
    await typist.look()
    with typist.client.together():  # both are in the pipe before the server reads either
        asked = typist.client.ask_completion(*CURSOR)
        typist.type("a")
    (item,) = (await typist.client.answer(asked))["result"]["items"]
    assert item["insertText"] == " + b"
    assert item["range"]["start"] == {"line": 1, "character": 12}
    assert item["command"]["arguments"][0]["version"] == 2
