"""Servers for tests: in this process, or as a process of their own; ended after the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer
from tests.wire_client import WireClient

TEXT = "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n"
CURSOR = (1, 11)
CANCELLED = -32800
INVALID_PARAMS = -32602
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
NOT_INITIALIZED = -32002
PARSE_ERROR = -32700


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tiny"), FIM_TOKENS)


class Clients:
    """Starts servers and ends them after the test."""

    def __init__(self, tiny: Path) -> None:
        self._tiny = tiny
        self._started: list[WireClient] = []

    async def start(self, *answers: str, **script: Any) -> WireClient:
        """A server in this process: a hundred times faster to start."""
        client = await WireClient.beside(self._tiny, answers=answers or ("a + b",), **script)
        self._started.append(client)
        return client

    async def process(self, *answers: str, **script: Any) -> WireClient:
        """A server as a process of its own."""
        client = await WireClient.start(self._tiny, answers=answers or ("a + b",), **script)
        self._started.append(client)
        return client

    async def ready(self, *answers: str, **script: Any) -> WireClient:
        """A server that is initialized, with one open document."""
        return await opened(await self.start(*answers, **script))

    async def close(self) -> None:
        for client in self._started:
            await client.close()


async def opened(client: WireClient) -> WireClient:
    """The handshake, and one open document."""
    await client.initialize()
    client.open(TEXT)
    return client


@pytest_asyncio.fixture
async def clients(tiny: Path) -> AsyncIterator[Clients]:
    found = Clients(tiny)
    yield found
    await found.close()
