"""Kind I: a request that is given up costs nothing more, and every id has one response."""

from __future__ import annotations

import random

import pytest

from tests import server_fixtures
from tests.kinds import Page
from tests.server_fixtures import CANCELLED, Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio
TEXT = "def f(a, b):\n    return \n"


async def test_i_two_hundred_requests_cancelled_at_any_time_leave_nothing_behind(
    clients: Clients,
) -> None:
    chance = random.Random(3)
    client = await clients.process(*["!wait", " + a", "!paced a + b"] * 100, " + b", drafts=3)
    await client.initialize()
    pages = [Page(client, f"file:///project/{n}.txt") for n in range(4)]
    for page in pages:
        page.open(TEXT)
    asked: list[int] = []
    for _ in range(200):
        asked.append(chance.choice(pages).ask(1, 11, kind=chance.choice([1, 2])))
        if chance.random() < 0.5:
            client.cancel(chance.choice(asked[-8:]))
        if chance.random() < 0.2:
            client.notify("test/release", {})
        if chance.random() < 0.2:
            await client.command("dg.status")
    for number in asked:
        client.cancel(number)
    await client.until(lambda: all(map(client.answers, asked)))
    assert {len(client.answers(number)) for number in asked} == {1}
    for page in pages:
        page.open("new text\n")
    client.notify("test/release", {})
    last = pages[0].ask(0, 8)
    while not client.answers(last):
        client.notify("test/release", {})
        await client.command("dg.status")
    assert "result" in client.answers(last)[0]
    await client.command("dg.status")
    assert (await client.command("dg.status"))["inFlight"] == 0
    assert (await client.engine())["running"] == 0


async def test_i_a_cancel_stops_the_engine_within_one_step(clients: Clients) -> None:
    client = await clients.process("!paced one two three four", drafts=50)
    await client.initialize()
    page = Page(client)
    page.open(TEXT)
    asked = page.ask(1, 11)
    await client.until_said("test/job")
    client.notify("test/release", {})
    client.cancel(asked)
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    # The job that is cancelled gets no release any more, so it ends at the step that it is at.
    found = await client.engine()
    assert (found["running"], found["jobs"]) == (0, 1)
