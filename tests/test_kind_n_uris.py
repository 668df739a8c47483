"""Kind N: a document is found again however its URI is spelled."""

from __future__ import annotations

import pytest

from tests import server_fixtures
from tests.kinds import Page
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio

SPELLINGS = {
    "file:///c:/work/a.py": [
        "file:///C:/work/a.py",
        "file:///c%3A/work/a.py",
        "FILE:///C%3a/work/a.py",
    ],
    "file://server/share/a.py": ["file://SERVER/share/a.py"],
    "file:///work/with%20blank.py": ["file:///work/with blank.py"],
    "file:///work/a%23b.py": ["file:///work/a%23b.py"],
    "file:///work/100%25.py": ["file:///work/100%25.py"],
    "file:///work/%C3%A9.py": ["file:///work/é.py", "file:///work/%c3%a9.py"],
    "untitled:Untitled-1": ["untitled:Untitled-1"],
    "vscode-notebook-cell:/work/a.ipynb#W0sZmlsZQ%3D%3D": [
        "vscode-notebook-cell:/work/a.ipynb#W0sZmlsZQ%3D%3D"
    ],
    "vscode-remote://ssh-remote%2Bhost/work/a.py": [
        "vscode-remote://ssh-remote+host/work/a.py",
        "vscode-remote://SSH-remote%2bhost/work/a.py",
    ],
    "inmemory://model/1": ["inmemory://model/1"],
}
APART = [
    ("file:///work/a%23b.py", "file:///work/a#b.py"),
    ("file:///work/a.py", "file:///work/A.py"),
    ("vscode-notebook-cell:/work/a.ipynb#1", "vscode-notebook-cell:/work/a.ipynb#2"),
    ("untitled:a.py", "file:///a.py"),
]


async def test_n_every_spelling_is_the_same_document(clients: Clients) -> None:
    client = await clients.process("x-")  # runs into no word behind it
    await client.initialize()
    for number, (first, others) in enumerate(SPELLINGS.items()):
        opened = Page(client, first)
        opened.open(f"text {number}\n")
        for other in others:
            page = Page(client, other)
            page.version = opened.version
            page.edit((0, 0), (0, 0), "-")
            opened.version = page.version
            for spelling in (first, other):
                items = await Page(client, spelling).items(0, 1)
                assert items, (first, other)
                assert items[0]["command"]["arguments"][0]["version"] == page.version
        client.notify("textDocument/didClose", {"textDocument": {"uri": others[-1]}})
        assert await opened.items(0, 1) == [], first
    assert (await client.command("dg.status"))["documents"] == 0


@pytest.mark.parametrize(("one", "other"), APART)
async def test_n_different_documents_stay_apart(clients: Clients, one: str, other: str) -> None:
    client = await clients.process("x")
    await client.initialize()
    Page(client, one).open("one\n")
    assert await Page(client, other).items(0, 1) == []
    Page(client, other).open("other\n")
    seen, _ = await Page(client, other).shown(0, 5)
    assert seen.endswith("other")
    assert (await client.command("dg.status"))["documents"] == 2
