"""textDocument/copilotInlineEdit at the real server, as sidekick.nvim and copilot-lsp speak it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from dg_lsp.documents import Document
from dg_lsp.methods.copilot_inline_edit import Context, Params, on_receipt
from dg_lsp.methods.diagnostics import Diagnostic
from dg_lsp.methods.text import DocumentId

from tests import server_fixtures
from tests.scripted_server import scripted_server
from tests.server_fixtures import CANCELLED, Clients
from tests.wire_client import CAPABILITIES, DOCUMENT, WireClient

clients, tiny = server_fixtures.clients, server_fixtures.tiny
pytestmark = pytest.mark.asyncio
METHOD = "textDocument/copilotInlineEdit"
RENAMED = "def add(first, b):\n    c = first\n    return first + b\n"
TEXT = RENAMED.replace("first", "a")
CALLS = "get(one, 1)\n" * 3
CANARY = "ghp_Kq7vR2mZ9tW4xLp8Kq7vR2mZ9tW4xLp8abcd"


class Author:
    """Someone who edits a document and asks for the next edit."""

    def __init__(self, client: WireClient, text: str = TEXT, uri: str = DOCUMENT) -> None:
        self.client = client
        self.uri = uri
        self.text = text
        self.version = 1
        client.open(text, uri)

    def edit(self, line: int, start: int, end: int, text: str) -> None:
        """Replace a part of a line."""
        self.version += 1
        lines = self.text.split("\n")
        lines[line] = lines[line][:start] + text + lines[line][end:]
        self.text = "\n".join(lines)
        place = {
            "start": {"line": line, "character": start},
            "end": {"line": line, "character": end},
        }
        change = {"range": place, "text": text}
        document = {"uri": self.uri, "version": self.version}
        params = {"textDocument": document, "contentChanges": [change]}
        self.client.notify("textDocument/didChange", params)

    def rename(self) -> None:
        """Give the parameter another name, as one types it."""
        self.edit(0, 8, 9, "fir")
        self.edit(0, 11, 11, "st")

    def apply(self, edit: dict[str, Any]) -> None:
        """What an editor does with a proposal."""
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["line"] == end["line"]
        self.edit(start["line"], start["character"], end["character"], edit["text"])

    def ask(self, **document: Any) -> int:
        """As sidekick.nvim asks."""
        params = {
            "textDocument": {"uri": self.uri, "version": self.version, **document},
            "position": {"line": 0, "character": 0},
            "context": {"triggerKind": 2},
        }
        return self.client.send(METHOD, params)

    async def next(self) -> list[dict[str, Any]]:
        """What is proposed."""
        return (await self.client.answer(self.ask()))["result"]["edits"]

    async def after(self, *diagnostics: dict[str, Any]) -> list[dict[str, Any]]:
        """What is proposed, when these are all diagnostics of the document."""
        params = {
            "textDocument": {"uri": self.uri, "version": self.version},
            "context": {"triggerKind": 2, "diagnostics": list(diagnostics)},
        }
        return (await self.client.request(METHOD, params))["result"]["edits"]

    async def take(self, edit: dict[str, Any]) -> None:
        """Apply a proposal and run its command."""
        self.apply(edit)
        command = edit["command"]
        params = {"command": command["command"], "arguments": command["arguments"]}
        assert (await self.client.request("workspace/executeCommand", params))["result"] is None


async def author(
    clients: Clients, text: str = TEXT, *, process: bool = False, **script: Any
) -> Author:
    start = clients.process if process else clients.start
    client = await start(**script)
    await client.initialize(initializationOptions={"nextEdit": True, "prefetch": False})
    return Author(client, text)


async def test_it_is_off_and_proposes_nothing_unless_it_is_switched_on(clients: Clients) -> None:
    client = await clients.process()
    result = await client.initialize()
    assert "experimental" not in result["capabilities"]
    writer = Author(client)
    writer.rename()
    assert (await client.answer(writer.ask()))["result"] == {"edits": []}
    client.notify("workspace/didChangeConfiguration", {"settings": {"dg": {"nextEdit": True}}})
    await client.request("dg/status", {})
    assert await writer.next() == []
    writer.edit(0, 15, 16, "other")
    assert (await writer.next())[0]["text"] == "other"


async def test_it_is_advertised_when_it_is_on(clients: Clients) -> None:
    client = await clients.start()
    result = await client.initialize(initializationOptions={"nextEdit": True})
    assert result["capabilities"]["experimental"] == {"copilotInlineEdit": True}
    assert "dg.nextEditAccepted" in result["capabilities"]["executeCommandProvider"]["commands"]


async def test_a_rename_is_proposed_line_by_line_until_it_is_done(clients: Clients) -> None:
    writer = await author(clients, process=True)
    writer.rename()
    (first,) = await writer.next()
    assert first["textDocument"] == {"uri": DOCUMENT, "version": 3}
    place = {"start": {"line": 1, "character": 8}, "end": {"line": 1, "character": 9}}
    assert (first["range"], first["text"]) == (place, "first")
    await writer.take(first)
    (second,) = await writer.next()
    await writer.take(second)
    assert writer.text == RENAMED
    assert await writer.next() == []
    assert (await writer.client.engine())["prefetches"] == 0


async def test_copilot_lsp_asks_without_a_context_and_says_what_it_drew(clients: Clients) -> None:
    writer = await author(clients)
    writer.rename()
    document = {"uri": DOCUMENT, "version": 3}
    position = {"line": 0, "character": 13}
    writer.client.notify("textDocument/didFocus", {"textDocument": {"uri": DOCUMENT}})
    asked = {"textDocument": document, "position": position}
    (edit,) = (await writer.client.request(METHOD, asked))["result"]["edits"]
    writer.client.notify("textDocument/didShowInlineEdit", {"item": {"command": edit["command"]}})
    assert await writer.next() != []
    writer.edit(2, 0, 0, " ")
    writer.edit(2, 0, 1, "")
    assert [e["range"]["start"]["line"] for e in await writer.next()] == [2]


async def test_an_edit_is_proposed_again_only_while_nothing_changed(clients: Clients) -> None:
    writer = await author(clients)
    writer.rename()
    first = await writer.next()
    again = await writer.next()
    assert [e["range"] for e in first] == [e["range"] for e in again]
    writer.edit(2, 0, 0, " ")
    writer.edit(2, 0, 1, "")
    assert (await writer.next())[0]["range"] != first[0]["range"]


async def test_an_edit_that_was_taken_and_undone_does_not_come_back(clients: Clients) -> None:
    writer = await author(clients, "def add(a):\n    return a\n")
    writer.rename()
    (edit,) = await writer.next()
    await writer.take(edit)
    writer.edit(1, 11, 16, "a")
    assert await writer.next() == []


async def test_an_edit_that_was_not_drawn_may_come_again(clients: Clients) -> None:
    writer = await author(clients)
    writer.rename()
    (drawn,) = await writer.next()
    writer.client.notify("textDocument/didShowInlineEdit", {"item": drawn})
    writer.apply(drawn)
    (unseen,) = await writer.next()
    writer.edit(0, 0, 0, "\n")
    (again,) = await writer.next()
    assert again["range"]["start"]["line"] == unseen["range"]["start"]["line"] + 1


async def test_undoing_the_edit_itself_leaves_nothing_to_propose(clients: Clients) -> None:
    writer = await author(clients)
    writer.rename()
    writer.edit(0, 8, 13, "a")
    assert await writer.next() == []


async def test_the_model_is_asked_behind_everything_else_and_must_agree(clients: Clients) -> None:
    writer = await author(clients, CALLS, ahead=["1, True"], process=True)
    writer.edit(0, 10, 10, ", True")
    (edit,) = await writer.next()
    assert (edit["text"], edit["range"]["start"]) == (", True", {"line": 1, "character": 10})
    counts = await writer.client.engine()
    assert (counts["jobs"], counts["prefetches"]) == (0, 1)
    writer.apply(edit)
    (certain,) = await writer.next()
    assert certain["range"]["start"] == {"line": 2, "character": 10}
    assert (await writer.client.engine())["prefetches"] == 1


@pytest.mark.parametrize("answer", ["", "1, False", "1, True, 1", "1", "!error", "!refuse"])
async def test_there_is_silence_when_the_model_says_something_else(
    clients: Clients, answer: str
) -> None:
    writer = await author(clients, CALLS, ahead=[answer])
    writer.edit(0, 10, 10, ", True")
    assert await writer.next() == []


async def test_a_late_answer_is_dropped_and_there_is_one_answer_for_each_id(
    clients: Clients,
) -> None:
    writer = await author(clients, CALLS, ahead=["!wait"], process=True)
    writer.edit(0, 10, 10, ", True")
    late = writer.ask()
    await writer.client.until_said("test/prefetch")
    writer.edit(0, 12, 16, "None")
    assert (await writer.client.answer(late))["result"] == {"edits": []}
    older = writer.ask()
    await writer.client.until_said("test/prefetch", 2)
    newer = writer.ask()
    assert (await writer.client.answer(older))["result"] == {"edits": []}
    await writer.client.until_said("test/prefetch", 3)
    writer.client.cancel(newer)
    assert (await writer.client.answer(newer))["error"]["code"] == CANCELLED
    assert await writer.client.complete(0, 0) != []
    assert all(len(writer.client.answers(i)) == 1 for i in (late, older, newer))
    assert (await writer.client.engine())["running"] == 0


async def test_a_document_that_is_closed_ends_the_work(clients: Clients) -> None:
    writer = await author(clients, CALLS, ahead=["!wait"])
    writer.edit(0, 10, 10, ", True")
    asked = writer.ask()
    await writer.client.until_said("test/prefetch")
    writer.client.notify("textDocument/didClose", {"textDocument": {"uri": DOCUMENT}})
    assert (await writer.client.answer(asked))["result"] == {"edits": []}


async def test_a_completion_is_answered_while_the_next_edit_is_worked_on(clients: Clients) -> None:
    writer = await author(clients, CALLS, ahead=["!wait"])
    writer.edit(0, 10, 10, ", True")
    asked = writer.ask()
    await writer.client.until_said("test/prefetch")
    assert await writer.client.complete(2, 4) != []
    assert writer.client.answers(asked) == []


async def test_another_version_is_not_answered_for(clients: Clients) -> None:
    writer = await author(clients)
    writer.rename()
    answer = await writer.client.answer(writer.ask(version=2))
    assert answer["result"] == {"edits": []}


@pytest.mark.parametrize("name", [".env", "id_rsa", "secrets/a.pem"])
async def test_nothing_is_proposed_in_a_file_that_is_excluded(clients: Clients, name: str) -> None:
    client = await clients.start()
    await client.initialize(initializationOptions={"nextEdit": True})
    writer = Author(client, uri=f"file:///project/{name}")
    writer.rename()
    assert await writer.next() == []


def unknown(line: int, start: int, name: str, **more: Any) -> dict[str, Any]:
    """A diagnostic as a client of a language server for TypeScript has it."""
    place = {
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": start + len(name)},
    }
    message = f"Cannot find name '{name}'."
    return {"range": place, "message": message, "severity": 1, "code": 2304, "source": "ts", **more}


SCRIPT = "function f(rows) {\n  let a = 1;\n  return rows;\n}\n"


async def script(clients: Clients, **told: Any) -> Author:
    """Someone who writes JavaScript, whose names nobody here knows."""
    client = await clients.process(**told)
    await client.initialize(initializationOptions={"nextEdit": True, "prefetch": False})
    writer = Author(client, "", "file:///project/b.ts")
    client.notify("textDocument/didClose", {"textDocument": {"uri": writer.uri}})
    writer.text = SCRIPT
    document = {"uri": writer.uri, "languageId": "typescript", "version": 1, "text": SCRIPT}
    client.notify("textDocument/didOpen", {"textDocument": document})
    return writer


async def test_a_name_that_another_server_does_not_know_any_more_is_renamed(
    clients: Clients,
) -> None:
    writer = await script(clients)
    assert await writer.after() == []
    writer.edit(0, 11, 15, "items")
    (edit,) = await writer.after(unknown(2, 9, "rows"))
    await writer.take(edit)
    assert writer.text == "function f(items) {\n  let a = 1;\n  return items;\n}\n"
    assert await writer.after() == []
    assert (await writer.client.engine())["prefetches"] == 0


@pytest.mark.parametrize("more", [{"severity": 3}, {"severity": 4}, {"tags": [1]}])
async def test_hints_and_what_is_unused_are_no_places(
    clients: Clients, more: dict[str, Any]
) -> None:
    writer = await script(clients)
    assert await writer.after() == []
    writer.edit(0, 11, 15, "items")
    assert await writer.after(unknown(2, 9, "rows", **more)) == []
    assert (await writer.client.engine())["prefetches"] == 0


@pytest.mark.parametrize(("answer", "made"), [(" items", ["items"]), (" rows", [])])
async def test_what_code_actions_tell_of_is_a_place_that_the_model_is_asked_about(
    clients: Clients, answer: str, made: list[str]
) -> None:
    writer = await script(clients, ahead=[answer])
    writer.edit(0, 11, 15, "items")
    found = unknown(2, 9, "rows")
    params = {
        "textDocument": {"uri": writer.uri},
        "range": found["range"],
        "context": {"diagnostics": [found]},
    }
    await writer.client.request("textDocument/codeAction", params)
    for edit in await writer.next():
        writer.apply(edit)
    assert [name for name in ("items",) if f"return {name}" in writer.text] == made
    assert (await writer.client.engine())["prefetches"] == 1


async def test_what_diagnostics_say_is_not_shown_to_the_model(clients: Clients) -> None:
    writer = await script(clients, ahead=[" items"])
    writer.edit(0, 11, 15, "items")
    found = unknown(2, 9, "rows")
    found["message"] += f" Did you mean {CANARY}?"
    assert len(await writer.after(found)) == 1
    shown = (await writer.client.request("test/shown_ahead", {}))["result"]
    assert shown
    assert CANARY not in str(shown)


async def test_diagnostics_of_a_file_that_is_excluded_are_not_looked_at(tiny: Path) -> None:
    session = scripted_server(tiny, {"answers": []}).session
    wanted = [msgspec.convert(unknown(0, 0, "A"), Diagnostic)]
    held: list[int] = []
    for name in (".env", "a.py"):
        document = Document.of(f"file:///project/{name}", 1, "python", "A = 1\n")
        session.documents.put(document)
        params = Params(DocumentId(document.uri, 1), context=Context(diagnostics=wanted))
        on_receipt(session, params)
        held.append(len(session.next_edits.request(document, "").known.found))
    assert held == [0, 1]


async def test_no_secret_is_shown_to_the_model(clients: Clients) -> None:
    text = f'get(one, 1)\n\nt = "{CANARY}"\nget(one, 1)\nn = get(one, 1, "{CANARY}")\n'
    writer = await author(clients, text, ahead=["1, True"])
    writer.edit(0, 10, 10, ", True")
    edits = await writer.next()
    assert [edit["range"]["start"]["line"] for edit in edits] == [3]
    shown = (await writer.client.request("test/shown_ahead", {}))["result"]
    assert shown
    assert CANARY not in str(shown)


async def test_cells_of_a_notebook_are_left_alone(clients: Clients) -> None:
    client = await clients.start()
    await client.initialize(initializationOptions={"nextEdit": True})
    cell = "vscode-notebook-cell:/project/a.ipynb#1"
    notebook = {
        "uri": "file:///project/a.ipynb",
        "version": 1,
        "notebookType": "jupyter-notebook",
        "cells": [{"kind": 2, "document": cell}],
    }
    document = {"uri": cell, "languageId": "python", "version": 1, "text": TEXT}
    client.notify(
        "notebookDocument/didOpen",
        {"notebookDocument": notebook, "cellTextDocuments": [document]},
    )
    params = {"textDocument": {"uri": cell, "version": 1}, "position": {"line": 0, "character": 0}}
    assert (await client.request(METHOD, params))["result"] == {"edits": []}


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 17), ("utf-16", 14), ("utf-32", 13)])
async def test_ranges_are_in_the_units_that_were_agreed_on(
    clients: Clients, encoding: str, column: int
) -> None:
    client = await clients.start()
    general = {"positionEncodings": [encoding]}
    await client.initialize(
        initializationOptions={"nextEdit": True}, capabilities={**CAPABILITIES, "general": general}
    )
    writer = Author(client, "def add(a):\n    é = '😀', a\n")
    writer.rename()
    (edit,) = await writer.next()
    assert edit["range"]["start"] == {"line": 1, "character": column}


async def test_malformed_parameters_get_an_error(clients: Clients) -> None:
    writer = await author(clients)
    answer = await writer.client.request(METHOD, {"textDocument": 7})
    assert answer["error"]["code"] == -32602
