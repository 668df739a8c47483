"""Kind D: an answer fits the newest version or is dropped, and what was refused stays away."""

from __future__ import annotations

import random

import pytest

from tests import server_fixtures
from tests.kinds import Page
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio
ANSWERS = ["alpha", "al", "beta", "alphabet"]
START = "def f():\n    \n\n\nf()\n"


@pytest.mark.parametrize("seed", range(4))
async def test_d_whatever_is_edited_in_flight_no_letter_is_doubled_or_eaten(
    clients: Clients, seed: int
) -> None:
    chance = random.Random(seed)
    client = await clients.process(*[f"!paced {a}" for a in ANSWERS] * 40, drafts=2)
    await client.initialize()
    page = Page(client)
    page.open(START)
    lines, column = START.split("\n"), 4
    texts = {page.version: lines[:]}
    asked: list[int] = []
    for _ in range(60):
        action = chance.choice(["letter", "letter", "erase", "above", "below", "release"])
        if action == "letter":
            letter = chance.choice("alphbet")
            lines[1] = lines[1][:column] + letter + lines[1][column:]
            page.edit((1, column), (1, column), letter)
            column += 1
        elif action == "erase" and column > 4:
            lines[1] = lines[1][: column - 1] + lines[1][column:]
            page.edit((1, column - 1), (1, column), "")
            column -= 1
        elif action == "above":
            page.edit((0, 0), (0, 0), "#")
            lines[0] = "#" + lines[0]
        elif action == "below":
            page.edit((4, 0), (4, 0), "f")
            lines[4] = "f" + lines[4]
        else:
            client.notify("test/release", {})
        texts[page.version] = lines[:]
        asked.append(page.ask(1, column, kind=2))
    while any(not client.answers(number) for number in asked):
        client.notify("test/release", {})
        await client.command("dg.status")
    whole = set(ANSWERS)
    for number in asked:
        assert len(client.answers(number)) == 1
        for item in client.answers(number)[0]["result"]["items"]:
            version = item["command"]["arguments"][0]["version"]
            at = item["range"]["start"]
            line = texts[version][at["line"]]
            made = line[4 : at["character"]] + item["insertText"]
            # It goes on from a start of what the model said, at the place that it said it for.
            assert any(made.endswith(answer) for answer in whole), (made, item)


async def test_d_what_was_refused_is_not_offered_there_again_until_the_text_changes(
    clients: Clients,
) -> None:
    client = await clients.process("alpha")
    await client.initialize()
    page = Page(client)
    page.open(START)
    assert [i["insertText"] for i in await page.items(1, 4, kind=2)] == ["alpha"]
    page.edit((1, 4), (1, 4), "x")
    page.edit((1, 4), (1, 5), "")
    assert await page.items(1, 4, kind=2) == []
    page.edit((1, 0), (1, 4), "    y = ")
    assert [i["insertText"] for i in await page.items(1, 8, kind=2)] == ["alpha"]
