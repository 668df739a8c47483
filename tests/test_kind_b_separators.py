"""Kind B: only line feeds and carriage returns break lines."""

from __future__ import annotations

import pytest

from tests import server_fixtures
from tests.kinds import Page
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio

SEPARATORS = {
    "form feed": "\f",
    "vertical tab": "\v",
    "next line": "\x85",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "file separator": "\x1c",
}


async def test_b_other_separators_stand_inside_their_line(clients: Clients) -> None:
    client = await clients.process("x")
    await client.initialize()
    page = Page(client)
    for name, separator in SEPARATORS.items():
        page.open(f"one{separator}two\nthree\n")
        seen, place = await page.shown(1, 5)
        assert seen == f"\none{separator}two\nthree", name
        assert place == {"line": 1, "character": 5}
        page.edit((0, 4), (0, 7), "TWO")
        seen, _ = await page.shown(0, 7)
        assert seen == f"\nthree\none{separator}TWO", name


@pytest.mark.parametrize("last", ["", "\n", "\r\n", "\r", "\n\n"])
async def test_b_an_edit_at_the_very_end_lands_there(clients: Clients, last: str) -> None:
    client = await clients.process("x")
    await client.initialize()
    page = Page(client)
    page.open(f"one\ntwo{last}")
    line = 1 + last.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    column = 0 if last else 3
    page.edit((line, column), (line, column), "end")
    seen, place = await page.shown(line, column + 3)
    assert seen == f"one\ntwo{last}end".replace("\r\n", "\n").replace("\r", "\n")
    assert place == {"line": line, "character": column + 3}
    page.edit((line, column), (99, 0), "")
    seen, _ = await page.shown(line, column)
    assert seen == f"one\ntwo{last}".replace("\r\n", "\n").replace("\r", "\n")
