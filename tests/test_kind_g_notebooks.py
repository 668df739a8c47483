"""Kind G: cells of a notebook miss nothing of each other, and their URIs break nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dg_lsp.documents import Document
from dg_lsp.lines import Lines
from dg_lsp.notebooks import ALONE, Cell, Notebook, NotebookStore

from tests import server_fixtures
from tests.server_fixtures import Clients
from tests.wire_client import WireClient

tiny, clients = server_fixtures.tiny, server_fixtures.clients
CODE, PROSE = 2, 1
NOTEBOOK = "file:///project/study.ipynb"


def uri(name: str) -> str:
    return f"vscode-notebook-cell:/project/study.ipynb#{name}"


def text_of(name: str, text: str, language: str = "python") -> dict[str, Any]:
    return {"uri": uri(name), "languageId": language, "version": 1, "text": text}


def cells_of(*names: str, kind: int = CODE) -> list[dict[str, Any]]:
    return [{"kind": kind, "document": uri(name)} for name in names]


class Reader:
    """A client with one notebook."""

    def __init__(self, client: WireClient) -> None:
        self.client = client

    def open(self, *texts: dict[str, Any], notebook: str = NOTEBOOK, **kinds: int) -> None:
        names = [text["uri"].rpartition("#")[2] for text in texts]
        self.client.notify(
            "notebookDocument/didOpen",
            {
                "notebookDocument": {
                    "uri": notebook,
                    "notebookType": "jupyter-notebook",
                    "version": 1,
                    "cells": [c for n in names for c in cells_of(n, kind=kinds.get(n, CODE))],
                },
                "cellTextDocuments": texts,
            },
        )

    def change(self, **cells: Any) -> None:
        self.client.notify(
            "notebookDocument/didChange",
            {
                "notebookDocument": {"uri": NOTEBOOK, "version": 2},
                "change": {"cells": cells},
            },
        )

    async def suggested(self, name: str, line: int, column: int) -> list[str]:
        asked = self.client.ask_completion(line, column, kind=1, uri=uri(name))
        return [i["insertText"] for i in (await self.client.answer(asked))["result"]["items"]]

    async def shown(self, name: str, line: int, column: int) -> str:
        """What the model sees, up to the cursor at the end."""
        await self.suggested(name, line, column)
        return (await self.client.request("test/shown", {}))["result"][-1]["prompt"]


async def reader(client: WireClient, **options: Any) -> Reader:
    await client.initialize(
        capabilities={
            "notebookDocument": {"synchronization": {"dynamicRegistration": False}},
            "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
        },
        initializationOptions=options,
    )
    return Reader(client)


THREE = [
    text_of("a", "import math\nradius = 2"),
    text_of("b", "area = "),
    text_of("c", "print(area)"),
]


@pytest.mark.asyncio
async def test_g_notebooks_are_advertised_with_all_their_cells(clients: Clients) -> None:
    client = await clients.process()
    result = await client.initialize(
        capabilities={"notebookDocument": {"synchronization": {}}},
    )
    assert result["capabilities"]["notebookDocumentSync"] == {
        "notebookSelector": [{"notebook": "*"}],
        "save": True,
    }


@pytest.mark.asyncio
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("where", ["a", "b", "c"])
async def test_g_a_cursor_in_any_cell_sees_the_cells_before_and_after(
    clients: Clients, count: int, where: str
) -> None:
    texts = THREE[:count]
    names = "abc"[:count]
    if where not in names:
        where = names[-1]
    reading = await reader(await clients.process("x"))
    reading.open(*texts)
    index = names.index(where)
    last = texts[index]["text"].split("\n")
    await reading.suggested(where, len(last) - 1, len(last[-1]))
    (job,) = (await reading.client.request("test/shown", {}))["result"][-1:]
    for text in texts:
        for line in text["text"].split("\n"):
            assert line in job["prompt"] + job["canvas"]


@pytest.mark.asyncio
async def test_g_the_order_of_the_cells_is_the_order_of_the_text(clients: Clients) -> None:
    reading = await reader(await clients.start("x"))
    reading.open(*THREE)
    prompt = await reading.shown("c", 0, 11)
    assert prompt.endswith("import math\nradius = 2\n\narea = \n\nprint(area)")
    reading.change(structure={"array": {"start": 0, "deleteCount": 2, "cells": cells_of("b", "a")}})
    prompt = await reading.shown("c", 0, 11)
    assert prompt.endswith("area = \n\nimport math\nradius = 2\n\nprint(area)")


@pytest.mark.asyncio
async def test_g_what_is_typed_in_one_cell_is_seen_from_another(clients: Clients) -> None:
    reading = await reader(await clients.start(" + 1", " + 2"))
    reading.open(*THREE)
    assert await reading.suggested("c", 0, 11) == [" + 1"]
    place = {"line": 0, "character": 7}
    reading.change(
        textContent=[
            {
                "document": {"uri": uri("b"), "version": 2},
                "changes": [{"range": {"start": place, "end": place}, "text": "radius ** 2"}],
            }
        ]
    )
    # What was shown for the old text is not shown for the new one.
    assert await reading.suggested("c", 0, 11) == [" + 2"]
    jobs = (await reading.client.request("test/shown", {}))["result"]
    assert "area = radius ** 2\n" in jobs[-1]["prompt"]


@pytest.mark.asyncio
async def test_g_a_cell_that_is_deleted_is_seen_no_more_and_answers_nothing(
    clients: Clients,
) -> None:
    reading = await reader(await clients.start("x"))
    reading.open(*THREE)
    reading.change(
        structure={
            "array": {"start": 0, "deleteCount": 1},
            "didClose": [{"uri": uri("a")}],
        }
    )
    prompt = await reading.shown("b", 0, 7)
    assert "import math" not in prompt
    assert await reading.suggested("a", 0, 11) == []


@pytest.mark.asyncio
async def test_g_a_cell_that_is_inserted_is_seen(clients: Clients) -> None:
    reading = await reader(await clients.start("x"))
    reading.open(*THREE)
    reading.change(
        structure={
            "array": {"start": 1, "deleteCount": 0, "cells": cells_of("new")},
            "didOpen": [text_of("new", "tau = 2 * math.pi")],
        }
    )
    prompt = await reading.shown("b", 0, 7)
    assert prompt.endswith("radius = 2\n\ntau = 2 * math.pi\n\narea = ")


@pytest.mark.asyncio
async def test_g_a_cell_that_becomes_prose_stands_there_as_a_comment(clients: Clients) -> None:
    reading = await reader(await clients.start("x"))
    reading.open(*THREE)
    reading.change(data=cells_of("a", kind=PROSE))
    prompt = await reading.shown("b", 0, 7)
    assert prompt.endswith("# import math\n# radius = 2\n\narea = ")


@pytest.mark.asyncio
async def test_g_prose_other_languages_and_magics_are_comments(clients: Clients) -> None:
    reading = await reader(await clients.start("x"))
    reading.open(
        text_of("title", "# The area\n\nof a *disc*", "markdown"),
        text_of("shell", "%%bash\nls"),
        text_of("timed", "%%time\nradius = 2"),
        text_of("query", "select 1", "sql"),
        text_of("line", "%matplotlib inline\n!pip list"),
        text_of("here", "area = "),
        title=PROSE,
    )
    prompt = await reading.shown("here", 0, 7)
    wanted = (
        "# # The area\n#\n# of a *disc*\n\n# %%bash\n# ls\n\n# %%time\nradius = 2\n\n"
        "# select 1\n\n%matplotlib inline\n!pip list\n\narea = "
    )
    assert prompt.endswith(wanted)


@pytest.mark.asyncio
async def test_g_the_suggestion_stands_in_the_cell_and_follows_its_typing(
    clients: Clients,
) -> None:
    reading = await reader(await clients.start("radius ** 2"))
    reading.open(*THREE)
    asked = reading.client.ask_completion(0, 7, kind=1, uri=uri("b"))
    (item,) = (await reading.client.answer(asked))["result"]["items"]
    assert item["range"]["start"] == {"line": 0, "character": 7}
    place = {"line": 0, "character": 7}
    reading.change(
        textContent=[
            {
                "document": {"uri": uri("b"), "version": 2},
                "changes": [{"range": {"start": place, "end": place}, "text": "rad"}],
            }
        ]
    )
    assert await reading.suggested("b", 0, 10) == ["ius ** 2"]
    assert (await reading.client.engine())["jobs"] == 1


@pytest.mark.asyncio
async def test_g_an_edit_reads_the_other_cells_and_changes_its_own_alone(
    clients: Clients,
) -> None:
    reading = await reader(await clients.start("area = 3"))
    client = reading.client
    client.on_request = lambda message: {"applied": True}
    reading.open(THREE[0], text_of("b", "area = 1"), THREE[2])
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 8}}
    result = await client.command(
        "dg.edit", {"uri": uri("b"), "range": whole, "instruction": "make it three"}
    )
    assert result["applied"], result["reason"]
    (change,) = client.said("workspace/applyEdit")[0]["edit"]["documentChanges"]
    assert change["textDocument"]["uri"] == uri("b")
    assert change["edits"] == [{"range": whole, "newText": "area = 3"}]
    (job,) = (await client.request("test/shown", {}))["result"]
    assert "import math" in job["prompt"]
    assert "print(area)" in job["prompt"] + job["canvas"]


@pytest.mark.asyncio
async def test_g_holes_of_a_cell_are_filled_where_they_stand(clients: Clients) -> None:
    reading = await reader(await clients.start("radius"))
    client = reading.client
    client.on_request = lambda message: {"applied": True}
    reading.open(THREE[0], text_of("b", "\narea = ___"), THREE[2])
    result = await client.command("dg.fillHoles", {"uri": uri("b")})
    assert result["applied"], result["reason"]
    (change,) = client.said("workspace/applyEdit")[0]["edit"]["documentChanges"]
    (edit,) = change["edits"]
    assert (edit["range"]["start"], edit["newText"]) == ({"line": 1, "character": 7}, "radius")


@pytest.mark.asyncio
@pytest.mark.parametrize("excluded", ["*.ipynb", "study.*"])
async def test_g_a_notebook_that_is_excluded_excludes_its_cells(
    clients: Clients, excluded: str
) -> None:
    reading = await reader(await clients.process("x"), exclude=[excluded])
    # Cells of some clients have URIs that say nothing of the notebook.
    cell = {"uri": "untitled:cell-1", "languageId": "python", "version": 1, "text": "area = "}
    client = reading.client
    client.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": NOTEBOOK,
                "notebookType": "x",
                "version": 1,
                "cells": [{"kind": CODE, "document": cell["uri"]}],
            },
            "cellTextDocuments": [cell],
        },
    )
    asked = client.ask_completion(0, 7, uri=cell["uri"])
    assert (await client.answer(asked))["result"]["items"] == []
    why = (await client.request("dg/status", None))["result"]["lastReason"]
    assert why["why"] == "excluded"
    assert why["message"].startswith("`study.ipynb` is excluded by")
    assert (await client.engine())["jobs"] == 0


@pytest.mark.asyncio
async def test_g_a_notebook_that_is_closed_is_forgotten(clients: Clients) -> None:
    reading = await reader(await clients.start("x"))
    reading.open(*THREE)
    client = reading.client
    client.notify("notebookDocument/didSave", {"notebookDocument": {"uri": NOTEBOOK}})
    client.notify(
        "notebookDocument/didClose",
        {
            "notebookDocument": {"uri": NOTEBOOK},
            "cellTextDocuments": [{"uri": text["uri"]} for text in THREE],
        },
    )
    assert await reading.suggested("b", 0, 7) == []
    assert (await client.command("dg.status"))["documents"] == 0


@pytest.mark.asyncio
async def test_g_changes_that_make_no_sense_leave_the_server_running(clients: Clients) -> None:
    reading = await reader(await clients.process("x"))
    reading.change(structure={"array": {"start": 0, "deleteCount": 1}})
    reading.open(*THREE)
    reading.change(structure={"array": {"start": 99, "deleteCount": -7, "cells": None}})
    reading.change(structure={"array": {"start": -5, "deleteCount": 0, "cells": cells_of("ghost")}})
    reading.change(textContent=[{"document": {"uri": uri("ghost"), "version": 2}, "changes": []}])
    reading.client.notify("notebookDocument/didChange", {"change": 3})
    assert await reading.suggested("b", 0, 7) == ["x"]


def test_g_a_document_of_no_notebook_stands_alone(tmp_path: Path) -> None:
    store = NotebookStore({}.get)
    document = Document.of("file:///a.py", 1, "python", "x\n")
    assert store.around(document) is ALONE
    assert ALONE.whole(document.lines) == (document.lines, 0)


def test_g_the_text_around_a_cell_is_that_of_a_file() -> None:
    documents = {
        n: Document.of(n, 1, "python", t) for n, t in [("a", "1\n"), ("b", "2"), ("c", "")]
    }
    store = NotebookStore(documents.get)
    store.put(Notebook("n", tuple(map(Cell, "abc"))))
    for name, first in [("a", 0), ("b", 3), ("c", 5)]:
        whole, found = store.around(documents[name]).whole(documents[name].lines)
        assert found == first
        assert whole.text() == ("1\n\n\n2\n\n" if name == "c" else "1\n\n\n2\n\n\n")
        assert Lines.of(whole.text()) == whole


@pytest.mark.asyncio
async def test_g_magics_do_not_make_a_cell_look_broken(clients: Clients) -> None:
    reading = await reader(await clients.process("inline", " 1 + 2", "echo $(date)"))
    setup = "!ls | head -3 (\n%matplotlib "
    reading.open(
        text_of("a", setup), text_of("b", "value =\nprint(value)"), text_of("c", "%%bash\n")
    )
    assert await reading.suggested("a", 1, 12) == ["inline"]
    assert await reading.suggested("b", 0, 7) == [" 1 + 2"]
    assert await reading.suggested("c", 1, 0) == ["echo $(date)"]  # which is no Python
