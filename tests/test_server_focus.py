"""dg/didChangeFocus: an editor says that it is looked at, and the shared engine knows."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from tests import server_fixtures
from tests.real_server import LOAD_SECONDS, checkpoint, normals
from tests.server_fixtures import CURSOR, Clients
from tests.test_kind_j_windows import Windows, answers, windows

__all__ = ["checkpoint", "windows"]
tiny, clients = server_fixtures.tiny, server_fixtures.clients

pytestmark = pytest.mark.asyncio
METHOD = "dg/didChangeFocus"
SEEN_SECONDS = 15.0


async def says(windows: Windows, **wanted: bool | None) -> None:
    """Wait until the daemon says this of the focus of its windows, and has no others."""
    began = time.monotonic()
    while True:
        engines = (await windows.status()).engines
        found = {w.name: w.focused for engine in engines for w in engine.windows}
        if found == wanted:
            return
        assert time.monotonic() - began < SEEN_SECONDS, found
        await asyncio.sleep(0.05)


async def test_the_shared_engine_knows_which_window_is_looked_at_and_shows_it(
    windows: Windows,
) -> None:
    first, second = await windows.open("first"), await windows.open("second")
    await says(windows, first=None, second=None)
    first.notify(METHOD, {"focused": True})
    second.notify(METHOD, {"focused": False})
    await says(windows, first=True, second=False)
    command = [sys.executable, "-m", "dg_lsp.cli.main", "status"]
    shown = await asyncio.to_thread(
        subprocess.run,
        command,
        **{"capture_output": True, "text": True, "env": {**os.environ, "COLUMNS": "200"}},
    )
    rows = {line.split()[1]: line.split("│")[3].strip() for line in rows_of(shown.stdout)}
    assert rows == {"first": "yes", "second": "no"}
    first.notify(METHOD, {"focused": None})
    await says(windows, first=None, second=False)
    await asyncio.gather(answers(first), answers(second))


def rows_of(table: str) -> list[str]:
    """The lines of windows."""
    return [line for line in table.splitlines() if " first " in line or " second " in line]


async def test_it_is_said_again_to_a_new_daemon_and_to_another_engine(windows: Windows) -> None:
    window = await windows.open("only")
    window.notify(METHOD, {"focused": True})
    await says(windows, only=True)
    before = normals(window)
    os.kill((await windows.status()).pid, signal.SIGKILL)
    await window.until(lambda: normals(window) > before, LOAD_SECONDS)
    await says(windows, only=True)
    before = normals(window)
    settings = {"model": str(windows.checkpoint), "threads": 2}
    window.notify("workspace/didChangeConfiguration", {"settings": settings})
    await window.until(lambda: normals(window) > before, LOAD_SECONDS)
    await says(windows, only=True)


async def test_what_is_said_while_the_model_loads_counts(windows: Windows) -> None:
    window = await windows.open("only", ready=False)
    window.notify(METHOD, {"focused": True})
    await window.until(lambda: normals(window) > 0, LOAD_SECONDS)
    await says(windows, only=True)


async def test_what_is_malformed_changes_nothing(windows: Windows) -> None:
    window = await windows.open("only")
    window.notify(METHOD, {"focused": True})
    await says(windows, only=True)
    for params in (None, {}, [], {"focused": "sideways"}, {"focused": {}}, {"focused": 7}):
        window.notify(METHOD, params)
    refused = await window.request(METHOD, {"focused": "sideways"})  # with an id it has an answer
    assert refused["error"]["code"] == server_fixtures.INVALID_PARAMS
    await answers(window)
    await says(windows, only=True)


async def test_a_window_with_an_engine_of_its_own_may_say_it_as_well(clients: Clients) -> None:
    client = await clients.start("a + b")
    client.notify(METHOD, {"focused": True})  # before initialize
    await server_fixtures.opened(client)
    client.notify(METHOD, {"focused": False})
    assert len(await client.complete(*CURSOR)) == 1
    assert client.said("window/showMessage") == []
