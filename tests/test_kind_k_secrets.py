"""Kind K: a canary, wherever it lies, reaches no prompt, no log, no status and no file of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import server_fixtures
from tests.server_fixtures import CURSOR, TEXT, Clients
from tests.wire_client import WireClient

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio

CANARY = "Kq7vR2mZ9tW4xLp8"
ASSIGNED = f'password = "{CANARY}"\n'
START = {"line": 0, "character": 0}
NONE = {"start": START, "end": START}
LINE = {"start": START, "end": {"line": 1, "character": 0}}


class Coder:
    """Someone who works in a project whose secrets are not for a model."""

    def __init__(self, client: WireClient, root: Path) -> None:
        self.client = client
        self.root = root
        self.uri = (root / "app.py").as_uri()
        self.version = 1

    def change(self, place: dict[str, Any], text: str) -> None:
        self.version += 1
        self.client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self.uri, "version": self.version},
                "contentChanges": [{"range": place, "text": text}],
            },
        )

    async def ask(self, uri: str, line: int, column: int) -> list[str]:
        asked = self.client.ask_completion(line, column, kind=1, uri=uri)
        return [i["insertText"] for i in (await self.client.answer(asked))["result"]["items"]]


async def a_file_of_secrets(coder: Coder) -> None:
    uri = (coder.root / ".env").as_uri()
    coder.client.open(f"PLAIN={CANARY}\n", uri)
    assert await coder.ask(uri, 0, 6) == []


async def an_ignored_file(coder: Coder) -> None:
    uri = (coder.root / "ignored.py").as_uri()
    coder.client.open(f"plain = '{CANARY}'\n", uri)
    assert await coder.ask(uri, 0, 8) == []


async def an_open_tab(coder: Coder) -> None:
    coder.client.open(ASSIGNED + TEXT, (coder.root / "tab.py").as_uri())


async def what_was_pasted(coder: Coder) -> None:
    coder.change(NONE, ASSIGNED)


async def a_deleted_line(coder: Coder) -> None:
    coder.change(NONE, ASSIGNED)
    coder.change(LINE, "")


async def a_diagnostic(coder: Coder) -> None:
    found = {"range": LINE, "message": f"password = '{CANARY}' is not used", "severity": 2}
    asked = {"textDocument": {"uri": coder.uri}, "range": LINE, "context": {"diagnostics": [found]}}
    actions = (await coder.client.request("textDocument/codeAction", asked))["result"]
    (fix,) = [action for action in actions if action["title"].startswith("Fix this diagnostic")]
    await coder.client.command(fix["command"]["command"], fix["command"]["arguments"][0])


PLACES = [
    a_file_of_secrets,
    an_ignored_file,
    an_open_tab,
    what_was_pasted,
    a_deleted_line,
    a_diagnostic,
]


@pytest.mark.parametrize("level", ["warning", "debug"])
async def test_k_a_canary_is_nowhere(
    clients: Clients, tmp_path: Path, settings_home: Path, runtime_home: Path, level: str
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for name, text in ((".env", f"PLAIN={CANARY}\n"), (".gitignore", "ignored.py\n")):
        (root / name).write_text(text)
    (root / "ignored.py").write_text(f"plain = '{CANARY}'\n")
    client = await clients.process("a + b", ahead=["x"], stderr=subprocess.PIPE)
    client.on_request = lambda message: {"applied": True}
    await client.initialize(rootUri=root.as_uri(), initializationOptions={"logLevel": level})
    coder = Coder(client, root)
    client.open(TEXT, coder.uri)
    line, column = CURSOR
    for place in PLACES:
        await place(coder)
        pasted = what_was_pasted in PLACES[: PLACES.index(place) + 1]
        assert await coder.ask(coder.uri, line + pasted, column) == ["a + b"], place.__name__
        coder.change(NONE, "")
    shown = (await client.request("test/shown", {}))["result"]
    assert len(shown) >= 2
    assert any("x" * len(CANARY) in job["prompt"] for job in shown)
    assert CANARY not in str(shown)
    assert CANARY not in str((await client.request("test/shown_ahead", {}))["result"])
    assert CANARY not in str([client.said(m) for m in ("didChangeStatus", "window/showMessage")])
    client.notify("exit", None)
    assert client.process.stderr is not None
    assert CANARY.encode() not in await client.process.stderr.read()
    await client.ended()
    files = [f for home in (settings_home, runtime_home) for f in home.rglob("*") if f.is_file()]
    assert not [file for file in files if CANARY.encode() in file.read_bytes()]
