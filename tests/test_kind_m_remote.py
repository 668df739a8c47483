"""Kind M: nothing between editor and server can be captured; by default there is no port."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import server_fixtures
from tests.kinds import Page
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
MAIN = "from dg_lsp.cli.main import main; main()"


@pytest.mark.asyncio
async def test_m_a_proxy_is_not_asked_and_no_port_is_open(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in PROXIES:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        client = await clients.process("x")
        await client.initialize()
        page = Page(client)
        page.open("a\n")
        assert len(await page.items(0, 1)) == 1
        server = psutil.Process(client.process.pid)
        found = [c for p in (server, *server.children(recursive=True)) for c in p.net_connections()]
        assert [c for c in found if c.family in (socket.AF_INET, socket.AF_INET6)] == []
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.accept()


def test_m_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = subprocess.run(
            [sys.executable, "-c", MAIN, "--socket", str(port)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    assert ran.returncode == 2
    assert ran.stderr == f"dg-lsp: Port {port} cannot be used (Address already in use).\n"


@pytest.mark.asyncio
async def test_m_a_port_is_for_this_machine_and_for_one_client(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        wanted = str(free.getsockname()[1])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", MAIN, "--socket", wanted),
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "DG_LSP_MODEL": "./none"},
    )
    try:
        assert process.stderr is not None
        line = (await process.stderr.readline()).decode()
        host, port = "127.0.0.1", wanted
        assert line == f"Listening on {host}:{port}.\n"
        _, writer = await asyncio.open_connection(host, int(port))
        refused = 0
        while not refused:  # until the server has taken its client
            try:
                _, other = await asyncio.open_connection(host, int(port))
            except (ConnectionRefusedError, ConnectionResetError):
                refused += 1
            else:
                other.close()
        writer.close()
        await asyncio.wait_for(process.wait(), 30)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
