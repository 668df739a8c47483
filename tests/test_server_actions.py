"""Code actions and their commands: what is offered where, and what choosing it does."""

from __future__ import annotations

from typing import Any

import pytest
from dg_lsp.commands.edit import BREAKS
from dg_lsp.docstrings import Gap, gap_at, written
from dg_lsp.lines import Lines

from tests import server_fixtures
from tests.server_fixtures import Clients
from tests.wire_client import DOCUMENT, WireClient

clients, tiny = server_fixtures.clients, server_fixtures.tiny

BLOCK = "def f():\n    \n\nf()\n"
HOLES = "def add(___):\n    return ___\n\n\nprint(add(1, 2))\n"
BARE = "def add(a, b):\n    return a + b\n"


def at(line: int, character: int = 0, end: tuple[int, int] | None = None) -> dict[str, Any]:
    start = {"line": line, "character": character}
    last = start if end is None else {"line": end[0], "character": end[1]}
    return {"start": start, "end": last}


async def actions(
    client: WireClient, place: dict[str, Any], **context: Any
) -> list[dict[str, Any]]:
    params = {
        "textDocument": {"uri": DOCUMENT},
        "range": place,
        "context": {"diagnostics": [], **context},
    }
    return (await client.request("textDocument/codeAction", params))["result"]


async def showing(clients: Clients, text: str, *answers: str) -> WireClient:
    client = await clients.start(*answers)
    client.on_request = lambda message: {"applied": True}
    await client.initialize()
    client.open(text)
    return client


async def chosen(client: WireClient, action: dict[str, Any]) -> Any:
    """What happens when the user takes an action."""
    command = action["command"]
    return await client.command(command["command"], command["arguments"][0])


def edits(client: WireClient) -> list[dict[str, Any]]:
    """The text edits of the one workspace edit that was sent."""
    (params,) = client.said("workspace/applyEdit")
    (change,) = params["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": DOCUMENT, "version": 1}
    return change["edits"]


EDIT, FIX, FILL = "Edit with instruction…", "Fix this diagnostic", "Fill the holes"
WRITE, COMPLETE = "Write the docstring", "Complete the block"
OFFERED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "code": ("x = 1\n", at(0), [EDIT]),
    "a marked line": (HOLES, at(1), [EDIT, FILL]),
    "a signature with a mark": (HOLES, at(0), [EDIT, FILL, WRITE]),
    "below the marks": (HOLES, at(4), [EDIT]),
    "a bare function": (BARE, at(0), [EDIT, WRITE]),
    "its body": (BARE, at(1), [EDIT]),
    "an open block": (BLOCK, at(1, 4), [EDIT, COMPLETE]),
    "a documented function": ('def f():\n    """Do."""\n', at(0), [EDIT]),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("case", OFFERED)
async def test_only_what_can_be_done_is_offered_and_nothing_changes(
    clients: Clients, case: str
) -> None:
    text, place, titles = OFFERED[case]
    client = await showing(clients, text)
    found = await actions(client, place)
    assert [action["title"] for action in found] == titles
    assert all(action["command"]["arguments"][0]["version"] == 1 for action in found)
    assert (await client.engine())["jobs"] == 0
    assert client.said("workspace/applyEdit") == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("only", "titles"),
    [
        (["refactor"], [EDIT, WRITE]),
        (["quickfix"], [FILL]),
        (["refactor.rewrite", "quickfix"], [EDIT, FILL, WRITE]),
        (["source"], []),
    ],
)
async def test_a_client_may_ask_for_some_kinds(
    clients: Clients, only: list[str], titles: list[str]
) -> None:
    client = await showing(clients, HOLES)
    found = await actions(client, at(0), only=only)
    assert [action["title"] for action in found] == titles


DIAGNOSTIC: dict[str, Any] = {
    "range": at(1, 11, (1, 12)),
    "message": "undefined name\n  'c'",
    "severity": 1,
    "code": "F821",
    "source": "linter",
}


@pytest.mark.asyncio
async def test_a_diagnostic_is_fixed_by_its_message_on_its_lines(clients: Clients) -> None:
    client = await showing(clients, "def f(a):\n    return c\n", "return a")
    found = await actions(client, at(1, 11), diagnostics=[DIAGNOSTIC])
    (fix,) = [action for action in found if action["title"] == FIX]
    assert fix["kind"] == "quickfix"
    assert fix["diagnostics"] == [DIAGNOSTIC]
    assert fix["command"]["arguments"][0]["instruction"] == "undefined name 'c'"
    assert (await chosen(client, fix))["applied"] is True
    (edit,) = edits(client)
    assert edit["range"] == at(1, 0, (1, 12))
    assert edit["newText"] == "    return a"


@pytest.mark.asyncio
async def test_an_editor_that_says_null_for_false_gets_its_edit(clients: Clients) -> None:
    client = await showing(clients, "def f(a):\n    return c\n", "return a")
    found = await actions(client, at(1, 11), diagnostics=[DIAGNOSTIC])
    (fix,) = [action for action in found if action["title"] == FIX]
    assert fix["command"]["arguments"][0].pop("preview") is False
    fix["command"]["arguments"][0]["preview"] = None
    assert (await chosen(client, fix))["applied"] is True


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "answer", "applied"),
    [
        ("def f(a):\n    return c\n", "return (", False),
        ("def f(a):\n    return c\n", "return a", True),
        ("def f(a:\n    return c\n", "return a", True),  # broken as it was
    ],
)
async def test_an_edit_that_nobody_sees_first_does_not_break_the_syntax(
    clients: Clients, text: str, answer: str, applied: bool
) -> None:
    client = await showing(clients, text, answer)
    found = await actions(client, at(1, 11), diagnostics=[DIAGNOSTIC])
    (fix,) = [action for action in found if action["title"] == FIX]
    result = await chosen(client, fix)
    assert (result["applied"], result["reason"]) == (applied, "" if applied else BREAKS)
    assert len(client.said("workspace/applyEdit")) == applied


@pytest.mark.asyncio
async def test_an_edit_that_is_shown_first_is_for_the_user_to_judge(clients: Clients) -> None:
    client = await showing(clients, "def f(a):\n    return c\n", "return (")
    found = await actions(client, at(1, 11), diagnostics=[DIAGNOSTIC])
    (fix,) = [action for action in found if action["title"] == FIX]
    fix["command"]["arguments"][0]["preview"] = True
    assert (await chosen(client, fix))["pending"] is True


@pytest.mark.asyncio
async def test_several_diagnostics_are_told_apart(clients: Clients) -> None:
    client = await showing(clients, BARE)
    other = {**DIAGNOSTIC, "message": "too long " * 20}
    odd = {"range": at(0), "message": " ", "severity": 9}
    found = await actions(client, at(1), diagnostics=[DIAGNOSTIC, other, odd])
    titles = [action["title"] for action in found if action["title"].startswith(FIX)]
    assert titles[0] == "Fix this diagnostic: undefined name 'c'"
    assert len(titles) == 2
    assert titles[1].endswith("…")


@pytest.mark.asyncio
async def test_all_holes_are_filled_by_one_edit(clients: Clients) -> None:
    client = await showing(clients, HOLES, "a, b", "a + b")
    found = await actions(client, at(0))
    assert (await chosen(client, found[1]))["applied"] is True
    first, second = edits(client)
    assert (first["range"], first["newText"]) == (at(0, 8, (0, 11)), "a, b")
    assert (second["range"], second["newText"]) == (at(1, 11, (1, 14)), "a + b")


@pytest.mark.asyncio
async def test_only_the_holes_of_a_selection_are_filled(clients: Clients) -> None:
    client = await showing(clients, HOLES, "a + b")
    found = await actions(client, at(1, 0, (1, 14)))
    assert (await chosen(client, found[1]))["applied"] is True
    (edit,) = edits(client)
    assert edit["range"] == at(1, 11, (1, 14))


@pytest.mark.asyncio
async def test_a_selection_beside_a_mark_fills_the_marks_of_its_lines(clients: Clients) -> None:
    client = await showing(clients, HOLES, "a + b")
    found = await actions(client, at(1, 0, (1, 1)))  # as editors do whose cursor is a selection
    assert (await chosen(client, found[1]))["applied"] is True
    (edit,) = edits(client)
    assert edit["range"] == at(1, 11, (1, 14))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"range": at(4)}, "There is no hole here; write ___ where code is missing."),
        ({"version": 7}, "The document changed since the holes were chosen; choose them again."),
        ({"uri": "file:///other.py"}, "The document is not open."),
    ],
)
async def test_holes_that_cannot_be_filled_say_why(
    clients: Clients, arguments: dict[str, Any], reason: str
) -> None:
    client = await showing(clients, HOLES, "a")
    result = await client.command("dg.fillHoles", {"uri": DOCUMENT, **arguments})
    assert (result["applied"], result["reason"]) == (False, reason)


@pytest.mark.asyncio
async def test_holes_of_a_document_that_changes_meanwhile_are_left_alone(
    clients: Clients,
) -> None:
    client = await showing(clients, HOLES, "!wait")
    argument = {"command": "dg.fillHoles", "arguments": [{"uri": DOCUMENT}]}
    asked = client.send("workspace/executeCommand", argument)
    await client.until_said("test/job")
    client.insert(2, 4, 0, "x")
    client.notify("test/release", {})
    result = (await client.answer(asked))["result"]
    assert result["reason"].startswith("The document changed meanwhile")
    assert client.said("workspace/applyEdit") == []


@pytest.mark.asyncio
async def test_a_docstring_is_written_behind_the_signature(clients: Clients) -> None:
    client = await showing(clients, BARE, "Add two numbers.")
    found = await actions(client, at(0))
    assert (await chosen(client, found[1]))["applied"] is True
    (edit,) = edits(client)
    assert edit["range"] == at(0, 14)
    assert edit["newText"] == '\n    """Add two numbers."""'


@pytest.mark.asyncio
async def test_the_model_sees_the_quotes_on_both_sides(clients: Clients) -> None:
    client = await showing(clients, BARE, "Add.")
    await client.command("dg.writeDocstring", {"uri": DOCUMENT, "position": at(0)["start"]})
    (shown,) = (await client.request("test/shown", {}))["result"]
    assert shown["prompt"].endswith('def add(a, b):\n    """')
    assert '"""\n    return a + b' in shown["canvas"]


@pytest.mark.asyncio
async def test_no_docstring_is_written_where_there_is_one(clients: Clients) -> None:
    client = await showing(clients, 'def f():\n    """Do."""\n', "Add.")
    place = {"uri": DOCUMENT, "position": at(0)["start"]}
    result = await client.command("dg.writeDocstring", place)
    assert result["applied"] is False
    assert result["reason"].startswith("No Python definition without a docstring")


GAPS: dict[str, tuple[str, int, Gap | None]] = {
    "a function": (BARE, 0, Gap(0, 14, "    ", '"""')),
    "a class": ("class A:\n  x = 1\n", 0, Gap(0, 8, "  ", '"""')),
    "async": ("async def f():\n    pass\n", 0, Gap(0, 14, "    ", '"""')),
    "several lines": ("def f(\n    a={1: 2},\n):\n    pass\n", 1, Gap(2, 2, "    ", '"""')),
    "a return type": ("def f() -> dict[str, int]:\n\tpass\n", 0, Gap(0, 26, "\t", '"""')),
    "a colon in a string": ("def f(a=':'):\n    pass\n", 0, Gap(0, 13, "    ", '"""')),
    "a comment behind": ("def f():  # noqa: E1\n    pass\n", 0, Gap(0, 20, "    ", '"""')),
    "no body yet": ("if a:\n  def f():\n", 1, Gap(1, 10, "    ", '"""')),
    "other quotes": ("x = '''a'''\ndef f():\n    pass\n", 1, Gap(1, 8, "    ", "'''")),
    "crlf": ("def f():\r\n    pass\r\n", 0, Gap(0, 8, "    ", '"""')),
    "one line": ("def f(): pass\n", 0, None),
    "documented": ('def f():\n    r"""Do."""\n', 0, None),
    "documented below a blank line": ("def f():\n\n    'Do.'\n", 0, None),
    "unfinished": ("def f(a,\n", 0, None),
    "in the body": ("def f():\n    x = {\n    }\n", 1, None),
    "no definition": ("define = 1\n", 0, None),
}


@pytest.mark.parametrize("case", GAPS)
def test_a_missing_docstring_is_seen(case: str) -> None:
    text, line, gap = GAPS[case]
    assert gap_at(Lines.of(text), line, "python") == gap


def test_only_python_has_docstrings() -> None:
    assert gap_at(Lines.of("class A:\n  x\n"), 0, "ruby") is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Do.", '\n    """Do."""'),
        ("Do.\n\n    More.\n    ", '\n    """Do.\n\n    More.\n    """'),
        ('Do.""" and', '\n    """Do."""'),
        ('Say "do"', '\n    """Say "do" """'),
        ("  \n", ""),
    ],
)
def test_a_docstring_is_closed_as_people_close_it(answer: str, text: str) -> None:
    lines = Lines.of("def f():\n    pass\n")
    gap = gap_at(lines, 0, "python")
    assert gap is not None
    assert written(lines, gap, answer) == text
    crlf = Lines.of("def f():\r\n    pass\r\n")
    assert written(crlf, gap, answer) == text.replace("\n", "\r\n")


@pytest.mark.asyncio
async def test_an_invoked_completion_offers_texts_that_differ(clients: Clients) -> None:
    client = await showing(clients, "x = \n", "1")
    items = await client.complete(0, 4, kind=1)
    assert [item["insertText"] for item in items] == ["1"]
