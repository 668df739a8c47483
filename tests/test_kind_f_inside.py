"""Kind F: inside a word, a literal or a line, only what is missing there is said."""

from __future__ import annotations

import pytest

from tests import server_fixtures
from tests.kinds import Proposed, suggestions
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio

PLACES = {
    # document, answer, what is suggested
    "a name's end is missing": ("total = va‸\n", "lue + 1", "lue + 1"),
    "a name's middle is missing": ("total = va‸e + 1\n", "lu", "lu"),
    "a name's end stands there": ("regis‸ter = 1\n", "ter", ""),
    "a number": ("x = 12‸5\n", "34", "34"),
    "a string": ('x = "he‸ld"\n', "llo, wor", "llo, wor"),
    "a string's end stands there": ('x = "‸"\n', 'hello"', "hello"),
    "a comment": ("# count the ‸\nx = 1\n", "lines of it", "lines of it"),
    "an apostrophe in a comment": ("# it ‸\nx = 1\n", "isn't here", "isn't here"),
    "between brackets": ("f(‸)\n", "a, b)", "a, b"),
    "between two brackets": ("f(g(‸))\n", "a))", "a"),
    "a blank line of a block": ("def f(a):\n    ‸\n", "    return a", "return a"),
    "before an operator": ("x = ‸ + b\n", "a", "a"),
    "before a word": ("x = ‸b\n", "a + ", "a + "),
    "before an argument": ("f(‸, b)\n", "a, b)", "a"),
    "blanks alone": ("x = al‸pha\n", "   ", ""),
    "blanks at the end": ("x = ‸\n", "a + b   ", "a + b"),
}


async def test_f_inside_a_word_or_a_line_only_what_is_missing_is_said(clients: Clients) -> None:
    cases = [Proposed("python", text, answer) for text, answer, _ in PLACES.values()]
    found = dict(zip(PLACES, await suggestions(clients, cases), strict=True))
    assert found == {name: wanted for name, (_, _, wanted) in PLACES.items()}


async def test_f_the_answer_stands_at_the_cursor_and_covers_nothing(clients: Clients) -> None:
    case = Proposed("python", "total = va‸e + 1\n", "lu")
    client = await clients.process(case.answer)
    await client.initialize()
    client.open(case.text)
    (item,) = await client.complete(*case.cursor)
    line, character = case.cursor
    place = {"line": line, "character": character}
    assert item["range"] == {"start": place, "end": place}
