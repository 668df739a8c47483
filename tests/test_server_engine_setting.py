"""The setting that chooses the engine, as a running server follows it."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from dg_engine.remote_engine import KEY_VARIABLE

from tests import remote_server, test_server_real_engine
from tests.remote_server import KEY, Served
from tests.server_fixtures import CURSOR, TEXT
from tests.test_server_real_engine import LOAD_SECONDS, SERVE, until_status
from tests.wire_client import WireClient

pytestmark = pytest.mark.asyncio
served, checkpoint = remote_server.served, test_server_real_engine.checkpoint


@pytest_asyncio.fixture
async def client() -> AsyncIterator[WireClient]:
    found = await WireClient.run("-c", SERVE)
    yield found
    await found.close()


def settings(checkpoint: Path, **more: object) -> dict[str, object]:
    return {"model": str(checkpoint), "threads": 1, "invokedDeadlineMs": 60_000, **more}


async def message(client: WireClient) -> str:
    """What dg/status says now."""
    return (await client.request("dg/status", None))["result"]["message"]


async def test_jobs_go_to_the_server_that_is_set_and_come_home_when_it_is_not(
    client: WireClient, checkpoint: Path, served: Served, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(KEY)
    remote = settings(
        checkpoint, engine="remote", remoteUrl=served.url, remoteKeyFile=str(tmp_path / "key")
    )
    await client.initialize(initializationOptions=remote)
    client.open(TEXT)
    await until_status(client, "Normal")
    # A server elsewhere is shared already, and this window's key is its own.
    assert len(psutil.Process(client.process.pid).children()) == 1
    before = served.jobs
    answer = await client.answer(client.ask_completion(*CURSOR, kind=1))
    assert "items" in answer["result"]
    assert served.jobs > before
    begun = len(client.said("didChangeStatus"))
    client.notify("workspace/didChangeConfiguration", {"settings": settings(checkpoint)})

    def changed() -> bool:
        states = [status["state"] for status in client.said("didChangeStatus")[begun:]]
        return "loading" in states and states[-1] == "ready"

    await client.until(changed, LOAD_SECONDS)
    after = served.jobs
    answer = await client.answer(client.ask_completion(*CURSOR, kind=1))
    assert "items" in answer["result"]
    assert served.jobs == after


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"engine": "remote"}, 'no "remoteUrl" is set'),
        (
            {"engine": "remote", "remoteUrl": "http://far.example"},
            "http://far.example would carry your code and the key unencrypted; use https.",
        ),
    ],
)
async def test_a_server_that_cannot_be_used_is_one_sentence(
    client: WireClient, checkpoint: Path, more: dict[str, object], words: str
) -> None:
    await client.initialize(initializationOptions=settings(checkpoint, **more))
    await until_status(client, "Error")
    assert words in await message(client)


async def test_a_server_that_is_down_is_told_of_without_the_key(
    checkpoint: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    served.server_close()
    client = await WireClient.run("-c", SERVE, stderr=subprocess.PIPE)
    remote = settings(checkpoint, engine="remote", remoteUrl=served.url, logLevel="trace")
    await client.initialize(initializationOptions=remote)
    told = f"{served.url}/ does not answer"
    await client.until(
        lambda: any(told in str(status) for status in client.said("didChangeStatus")),
        LOAD_SECONDS,
    )
    await client.close()
    assert client.process.stderr is not None
    log = (await client.process.stderr.read()).decode()
    assert log
    assert KEY not in log + str(client.received)
