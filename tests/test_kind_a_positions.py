"""Kind A: a position means the same character to the editor and to the server."""

from __future__ import annotations

import pytest

from tests import server_fixtures
from tests.kinds import Page, units
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio

TEXTS = {
    "an emoji": "a😀b",
    "a composed letter": "caf\u00e9 b",
    "a decomposed letter": "cafe\u0301 b",
    "a family of joined emoji": "👨\u200d👩\u200d👧 b",
    "Chinese characters": "変数 b",
    "tabs": "\ta\tb",
}
ANSWER = "x-"
"""May stand in front of any character: it runs into no word."""
ENCODINGS = ["utf-8", "utf-16", "utf-32"]


async def page_in(clients: Clients, encoding: str) -> Page:
    client = await clients.process(ANSWER)
    result = await client.initialize(
        capabilities={
            "general": {"positionEncodings": [encoding]},
            "workspace": {"applyEdit": True},
        }
    )
    assert result["capabilities"]["positionEncoding"] == encoding
    return Page(client)


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_every_position_comes_back_and_an_edit_lands_there(
    clients: Clients, encoding: str
) -> None:
    page = await page_in(clients, encoding)
    for name, text in TEXTS.items():
        page.open(f"{text}\nend\n")
        for index in range(len(text) + 1):
            before, after = text[:index], f"{text[index:]}\nend\n"
            at = units(before, encoding)
            place = {"line": 0, "character": at}
            assert await page.shown(0, at) == (after + before, place), (name, index)
            page.edit((0, at), (0, at), "é")
            behind = at + units("é", encoding)
            seen, place = await page.shown(0, behind)
            assert (seen, place["character"]) == (f"{after}{before}é", behind), (name, index)
            page.edit((0, at), (0, behind), "")


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_a_position_where_there_is_none_is_moved_to_the_nearest_before(
    clients: Clients, encoding: str
) -> None:
    page = await page_in(clients, encoding)
    page.open("a😀b\nend")
    end = units("a😀b", encoding)
    for line, character, wanted in [
        *((0, inside, 1) for inside in range(2, units("a😀", encoding))),
        (0, end + 9, end),
        (0, 2**31 - 1, end),
        (1, 99, 3),
    ]:
        _, place = await page.shown(line, character)
        assert place == {"line": line, "character": wanted}
    _, place = await page.shown(99, 0)
    assert place == {"line": 1, "character": 3}


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_the_ranges_of_an_edit_of_ours_are_in_the_same_units(
    clients: Clients, encoding: str
) -> None:
    page = await page_in(clients, encoding)
    page.client.on_request = lambda message: {"applied": True}
    page.open("'😀' + ___ # 変\n")
    result = await page.client.command("dg.fillHoles", {"uri": page.uri})
    assert result["applied"], result["reason"]
    ((edit,),) = page.client.said("workspace/applyEdit")[0]["edit"]["changes"].values()
    start = units("'😀' + ", encoding)
    assert [edit["range"][end]["character"] for end in ("start", "end")] == [start, start + 3]
