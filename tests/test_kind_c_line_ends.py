"""Kind C: the model reads the same whatever ends the lines, and the answer ends them likewise."""

from __future__ import annotations

import itertools

import pytest

from tests import server_fixtures
from tests.kinds import Page
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio

LINES = ["def first(a):", "    return a", "", "", "def second(b):", "    ", "", "", "second(1)", ""]
ENDS = {"LF": ["\n"], "CRLF": ["\r\n"], "CR": ["\r"], "CRLF, some LF": ["\r\n", "\n"]}
ANSWER = "total = b\n    return total"


def written(ends: list[str]) -> str:
    return "".join(a + b for a, b in zip(LINES, itertools.cycle(ends), strict=False))


async def test_c_the_model_reads_the_same_and_the_answer_has_the_documents_ends(
    clients: Clients,
) -> None:
    prompts: set[str] = set()
    for ends in ENDS.values():
        client = await clients.process(ANSWER)
        await client.initialize()
        page = Page(client, "file:///project/a.py", "python")
        page.open(written(ends))
        (item, *_) = await page.items(5, 4)
        assert item["insertText"] == ANSWER.replace("\n", ends[0])
        prompts.add((await client.request("test/shown", {}))["result"][0]["prompt"])
    assert len(prompts) == 1
    assert "\r" not in prompts.pop()


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
async def test_c_what_follows_is_known_again_across_line_ends(
    clients: Clients, ends: list[str]
) -> None:
    client = await clients.process("total = b\n\n\nsecond(1)")
    await client.initialize()
    page = Page(client, "file:///project/a.py", "python")
    page.open(written(ends))
    (item, *_) = await page.items(5, 4)
    assert item["insertText"] == "total = b"
