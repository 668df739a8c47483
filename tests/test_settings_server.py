"""Settings files as a running server follows them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests import server_fixtures
from tests.server_fixtures import Clients, opened
from tests.wire_client import WireClient

pytestmark = pytest.mark.asyncio
tiny, clients = server_fixtures.tiny, server_fixtures.clients
SOURCE = "def add(a, b):\n    return \n"


async def working_in(client: WireClient, *folders: Path, **options: object) -> WireClient:
    """The handshake with these workspace folders."""
    await client.initialize(
        workspaceFolders=[{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
        initializationOptions=options,
    )
    return client


async def suggested(client: WireClient, file: Path) -> bool:
    """Whether there is a suggestion in a file; it is opened anew."""
    client.open(SOURCE, uri=file.as_uri())
    answer = client.ask_completion(1, 11, kind=1, uri=file.as_uri())
    found = (await client.answer(answer))["result"]["items"]
    client.notify("textDocument/didClose", {"textDocument": {"uri": file.as_uri()}})
    return bool(found)


async def told(client: WireClient, part: str, count: int = 1) -> None:
    """Wait for a warning that holds these words."""
    await client.until(
        lambda: sum(part in m["message"] for m in client.said("window/showMessage")) >= count
    )


async def test_a_workspace_file_excludes_in_its_own_folder_alone(
    clients: Clients, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (one / ".dg-lsp.toml").write_text('exclude = ["*.py"]\n')
    client = await working_in(await clients.process(), one, two)
    assert not await suggested(client, one / "a.py")
    assert await suggested(client, two / "a.py")


async def test_a_folder_that_comes_and_goes_brings_and_takes_its_settings(
    clients: Clients, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / ".dg-lsp.toml").write_text('exclude = ["*.py"]\nthreads = 0\n')
    file = tmp_path / "secret" / "a.py"
    client = await working_in(await clients.process())
    assert await suggested(client, file)
    folder = {"uri": (tmp_path / "secret").as_uri(), "name": "secret"}
    client.notify(
        "workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}}
    )
    await told(client, ':2: The setting "threads" takes a whole number')
    assert not await suggested(client, file)
    client.notify(
        "workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder]}}
    )
    assert await suggested(client, file)


async def test_a_secret_list_of_a_folder_that_comes_counts_for_the_next_request(
    clients: Clients, tmp_path: Path
) -> None:
    (tmp_path / ".dgignore").write_text("*.py\n")
    client = await working_in(await clients.start())
    client.open(SOURCE, uri=(tmp_path / "a.py").as_uri())
    with client.together():
        client.notify(
            "workspace/didChangeWorkspaceFolders",
            {"event": {"added": [{"uri": tmp_path.as_uri(), "name": "x"}], "removed": []}},
        )
        asked = client.ask_completion(1, 11, uri=(tmp_path / "a.py").as_uri())
    assert (await client.answer(asked))["result"]["items"] == []


async def test_files_are_followed_as_they_come_change_break_and_go(
    clients: Clients, tmp_path: Path
) -> None:
    client = await working_in(await clients.process(), tmp_path, logLevel="info")
    file = tmp_path / ".dg-lsp.toml"
    assert await suggested(client, tmp_path / "a.py")

    async def until(wanted: bool) -> None:
        # Each try is a request and its answer: the machine says when it has noticed the file.
        async with asyncio.timeout(10):
            while await suggested(client, tmp_path / "a.py") is not wanted:
                pass

    await until(True)
    file.write_text('exclude = ["*.py"]\n')
    await until(False)
    file.write_text('exclude = ["*.py"\n')
    await told(client, f"{file}:2: This is not TOML")
    assert not await suggested(client, tmp_path / "a.py")
    new = tmp_path / "new"
    new.write_text("prefetch = true\n")
    new.replace(file)
    await until(True)
    file.write_text('exclude = ["*.py"]\n')
    await until(False)
    file.unlink()
    await until(True)


async def test_the_users_own_file_is_followed_into_a_folder_that_is_made_for_it(
    clients: Clients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    client = await working_in(await clients.process(), tmp_path)
    assert await suggested(client, tmp_path / "a.py")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "dg-lsp").mkdir()
    file = tmp_path / "config" / "dg-lsp" / "config.toml"
    file.write_text("threads = 0\n")
    await told(client, f"{file}:1: The setting")


async def test_limits_of_a_folder_shape_the_jobs_of_its_documents(
    clients: Clients, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (one / ".dg-lsp.toml").write_text("maxLineTokens = 4\n")
    client = await working_in(await clients.start(), one, two)
    await suggested(client, one / "a.py")
    assert (await client.engine())["widths"] == [2, 4]
    await suggested(client, two / "a.py")
    assert (await client.engine())["widths"] == [2, 4, 8, 16]


async def test_settings_of_the_editor_stand_above_the_files(
    clients: Clients, tmp_path: Path
) -> None:
    (tmp_path / ".dg-lsp.toml").write_text("maxLineTokens = 4\n")
    client = await working_in(await clients.start(), tmp_path, maxLineTokens=2)
    await suggested(client, tmp_path / "a.py")
    assert (await client.engine())["widths"] == [2]


async def test_a_document_that_is_opened_before_its_settings_is_kept(clients: Clients) -> None:
    client = await opened(await clients.start())
    client.notify("workspace/didChangeConfiguration", {"settings": {"dg": {"prefetch": False}}})
    assert (await client.command("dg.status"))["documents"] == 1


@pytest.mark.parametrize(
    "root", ["file:///a%00b", "file:///%ED%A0%80", "", "x", "file://", "untitled:a"]
)
async def test_a_folder_that_can_be_none_is_left_out(clients: Clients, root: str) -> None:
    client = await opened(await clients.start("a + b"))
    folders = {"added": [{"uri": root, "name": "x"}], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": folders})
    assert len(await client.complete(1, 11)) == 1
    assert client.said("window/showMessage") == []
