"""Kind E: what is accepted says nothing again that follows, and leaves brackets as they were."""

from __future__ import annotations

from itertools import product

import pytest
from dg_lsp.brackets import balance_of

from tests import server_fixtures
from tests.kinds import Proposed, suggestions
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio

CLOSERS = {
    "round": ("f(", ")"),
    "square": ("[", "]"),
    "curly": ("{", "}"),
    "one quote": ("'", "'"),
    "two quotes": ('"', '"'),
}
STATES = {
    # what stands behind the cursor, and what is wanted of an answer that closes by itself
    "absent": ("x = {open}‸\n", "a{close}"),
    "absent, with a line below": ("x = {open}‸\ny = 1\n", "a{close}"),
    "present": ("x = {open}‸{close}\n", "a"),
    "present, and more behind it": ("x = {open}‸{close} + 1\n", "a"),
    "owned by an outer block": ("x = g({open}‸)\n", "a{close}"),
    "owned by a block around": ("x = g(\n    {open}‸\n)\n", "a{close}"),
}
BLOCKS = {
    # language, document, answer, what is wanted
    "Python": ("python", "def f(y):\n    ‸\nz = f(1)\n", "return y\nz = f(1)", "return y"),
    "JavaScript": ("javascript", "if (a) {\n  ‸\n}\n", "b();\n}", "b();"),
    "an inner block": ("javascript", "if (d) {\n  ‸\n}\n", "if (b) {\n    c();\n  }", ""),
    "Ruby": ("ruby", "def f\n  ‸\nend\n", "x = 1\nend", "x = 1"),
    "a tag": ("html", "<div>\n  ‸\n</div>\n", "<b>x</b></div>", "<b>x</b>"),
    "the next line": ("python", "a = 1\n‸\nreturn_value = 2\n", "return_value = 2", "-"),
    "the rest of the line": ("python", "total = ‸ + tax\n", "net + tax", "net"),
}


async def test_e_a_closer_is_said_where_it_is_missing_and_not_where_it_stands(
    clients: Clients,
) -> None:
    cases: dict[str, tuple[Proposed, str]] = {}
    for (closer, (opens, closes)), (state, (shape, wanted)) in product(
        CLOSERS.items(), STATES.items()
    ):
        marks = {"{open}": opens, "{close}": closes}
        text, answer, left = shape, "a{close}", wanted
        for mark, written in marks.items():
            text, answer, left = (part.replace(mark, written) for part in (text, answer, left))
        cases[f"{closer}, {state}"] = Proposed("python", text, answer), left
    found = await suggestions(clients, [case for case, _ in cases.values()])
    made = dict(zip(cases, found, strict=True))
    assert made == {name: wanted for name, (_, wanted) in cases.items()}
    for name, (case, _) in cases.items():
        before, after = case.text, case.accepted(made[name])
        worse = balance_of(after, "python").faults > balance_of(before, "python").faults
        assert not worse, name


async def test_e_no_line_and_no_end_of_a_block_is_said_again(clients: Clients) -> None:
    cases = {name: Proposed(*given[:3]) for name, given in BLOCKS.items()}
    found = dict(zip(cases, await suggestions(clients, list(cases.values())), strict=True))
    wanted = {
        name: {"": given[2], "-": ""}.get(given[3], given[3]) for name, given in BLOCKS.items()
    }
    assert found == wanted
    for name, case in cases.items():
        following = case.marked.partition("‸")[2].split("\n")[1:]
        told = [line for line in found[name].split("\n")[1:] if len(line.strip()) > 3]
        assert not set(told) & set(following), name
