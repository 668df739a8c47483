"""However the client leaves, nothing of ours stays behind; a start costs little."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import server_fixtures
from tests.server_fixtures import (
    CANCELLED,
    CURSOR,
    Clients,
    opened,
)
from tests.wire_client import ROOT, WireClient

clients, tiny = server_fixtures.clients, server_fixtures.tiny
pytestmark = pytest.mark.asyncio


async def test_shutdown_answers_every_request_first(clients: Clients) -> None:
    client = await opened(await clients.process("!wait"))
    asked = client.ask_completion(*CURSOR)
    await client.until_said("test/job")
    answer = await client.request("shutdown", None)
    assert answer["result"] is None
    assert client.answers(asked)[0]["error"]["code"] == CANCELLED
    client.notify("exit", None)
    assert await client.ended() == 0


async def test_exit_without_shutdown_ends_the_process_with_an_error(clients: Clients) -> None:
    client = await opened(await clients.process("!wait"))
    asked = client.ask_completion(*CURSOR)
    await client.until_said("test/job")
    client.notify("exit", None)
    assert await client.ended() == 1
    assert len(client.answers(asked)) == 1


@pytest.mark.parametrize("moment", ["before initialize", "while loading", "in flight", "idle"])
async def test_a_client_that_hangs_up_leaves_no_process(clients: Clients, moment: str) -> None:
    load = "later" if moment == "while loading" else "now"
    if moment == "before initialize":
        client = await clients.process()
        # A refusal shows that the server listens: its start is not what is timed.
        assert "error" in await client.request("dg/unknown", {})
    else:
        client = await opened(await clients.process("!wait", load=load))
    if moment == "in flight":
        client.ask_completion(*CURSOR)
        await client.until_said("test/job")
    client.hang_up()
    await client.ended()


async def test_a_terminated_server_ends(clients: Clients) -> None:
    client = await opened(await clients.process())
    client.process.send_signal(signal.SIGTERM)
    await client.ended()


async def test_a_killed_client_leaves_neither_server_nor_engine(tiny: Path) -> None:
    """The client is a process of its own here, killed without a word."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.doomed_client", str(tiny)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        pids = json.loads(await process.stdout.readline())
    assert [_runs(pid) for pid in pids] == [True, True]
    process.kill()
    await process.wait()
    # Both hold the other end of this pipe as their standard error, so its end is theirs.
    async with asyncio.timeout(2):
        await process.stdout.read()


async def test_a_client_whose_pipes_somebody_else_holds_is_missed_as_well(
    clients: Clients,
) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "input()"), stdin=subprocess.PIPE
    )
    client = await clients.process()
    await client.initialize(processId=parent.pid)
    parent.kill()
    await parent.wait()
    await client.ended()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_socket_is_served_on_loopback_until_its_client_leaves() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from dg_lsp.server import run_socket; run_socket(0)"),
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = (await process.stderr.readline()).decode()
    host, _, port = said.removeprefix("Listening on ").rstrip(".\n").partition(":")
    assert host == "127.0.0.1"
    client = WireClient(*await asyncio.open_connection(host, int(port)))
    result = await client.initialize()
    assert result["serverInfo"]["name"] == "dg-lsp"
    client.hang_up()
    async with asyncio.timeout(2):
        await process.wait()
    await client.close()


HEAVY = ("torch", "transformers", "numpy", "safetensors", "triton")


@pytest.mark.parametrize("module", ["dg_lsp.server", "dg_lsp.language_server", "dg_lsp.completion"])
async def test_the_server_imports_nothing_heavy(module: str) -> None:
    code = f"import {module}, sys; print(*sorted({{n.split('.')[0] for n in sys.modules}}))"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code), stdout=subprocess.PIPE
    )
    output, _ = await process.communicate()
    imported = set(output.decode().split())
    assert "msgspec" in imported or module == "dg_lsp.server"
    assert imported.isdisjoint(HEAVY)
