"""The server with an engine process of its own and a random checkpoint: either crashes or ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from tests.real_server import LOAD_SECONDS, SERVE, checkpoint, kinds, normals, settings_for
from tests.server_fixtures import CURSOR, TEXT
from tests.wire_client import WireClient

__all__ = ["checkpoint"]

OWN = {"shareEngine": False}

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def client(checkpoint: Path) -> AsyncIterator[WireClient]:
    found = await WireClient.run("-c", SERVE)
    await found.initialize(initializationOptions=settings_for(checkpoint, **OWN))
    found.open(TEXT)
    yield found
    await found.close()


async def until_status(client: WireClient, kind: str, count: int = 1) -> None:
    """Until the newest status is of a kind and that many of this kind were told."""

    def told() -> bool:
        return kinds(client)[-1:] == [kind] and kinds(client).count(kind) >= count

    await client.until(told, LOAD_SECONDS)


def engine_of(client: WireClient) -> psutil.Process:
    (engine,) = psutil.Process(client.process.pid).children()
    return engine


async def asked(client: WireClient) -> dict[str, object]:
    """The result of a request that the user made; what a random model says does not matter."""
    answer = await client.answer(client.ask_completion(*CURSOR, kind=1))
    return answer["result"]


async def test_a_killed_engine_is_told_of_and_comes_back(client: WireClient) -> None:
    await until_status(client, "Normal")
    assert "items" in await asked(client)
    await client.request("dg/status", None)
    first = engine_of(client)
    first.kill()
    await until_status(client, "Normal", normals(client) + 1)
    assert any(told["retryAt"] for told in client.said("dg/status"))
    assert (await client.request("dg/status", None))["result"]["retryAt"] is None
    assert "Warning" in kinds(client)
    assert engine_of(client).pid != first.pid
    assert "items" in await asked(client)
    assert (await client.command("dg.status"))["message"] == ""


async def test_an_edit_by_a_random_model_is_applied_or_explained(client: WireClient) -> None:
    await until_status(client, "Normal")
    client.on_request = lambda message: {"applied": True}
    place = {"line": 0, "character": 0}
    result = await client.command(
        "dg.edit",
        {
            "uri": "file:///project/example.py",
            "range": {"start": place, "end": place},
            "instruction": "rename it",
        },
    )
    assert result["applied"] is True or result["reason"].endswith(".")
    assert result["forwards"] > 0


@pytest.mark.parametrize("how", ["exit", "hang up"])
async def test_the_engine_ends_with_the_server(client: WireClient, how: str) -> None:
    await until_status(client, "Normal")
    engine = engine_of(client)
    if how == "exit":
        client.notify("exit", None)
    else:
        client.hang_up()
    await client.ended()
    _, alive = await asyncio.to_thread(psutil.wait_procs, [engine], 2)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


async def test_a_killed_server_takes_its_engine_along(client: WireClient) -> None:
    await until_status(client, "Normal")
    engine = engine_of(client)
    client.process.kill()
    await client.ended()
    _, alive = await asyncio.to_thread(psutil.wait_procs, [engine], 2)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


async def test_a_missing_model_is_a_status_that_says_what_to_do(tmp_path: Path) -> None:
    client = await WireClient.run("-c", SERVE)
    try:
        missing = str(tmp_path / "nothing")
        await client.initialize(initializationOptions={"model": missing, **OWN})
        await until_status(client, "Error")
        message = client.said("didChangeStatus")[-1]["message"]
        assert message == f"{missing} does not exist; give the folder that holds config.json."
    finally:
        await client.close()
