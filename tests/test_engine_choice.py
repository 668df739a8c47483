"""Which engine the process holds: its command line, and a remote one spoken to from there."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
import pytest_asyncio
from dg_engine.choice import EngineChoice, EngineKind, is_near
from dg_engine.client import EngineClient, EngineState, EngineStatus
from dg_engine.engine import EngineError
from dg_engine.job import DoneKind
from dg_engine.links import child_command

from tests import remote_server
from tests.engine_contract import LONG, frames_of
from tests.engine_fixtures import job, tiny_checkpoint
from tests.remote_server import KEY, Served


@pytest.mark.parametrize(
    ("choice", "arguments"),
    [
        (EngineChoice(), []),
        (EngineChoice(url="https://far.example"), []),
        (EngineChoice(EngineKind.VLLM, "https://far.example", "/key"), ["--engine", "vllm"]),
        (
            EngineChoice(EngineKind.REMOTE, "https://far.example", "/key"),
            ["--engine", "remote", "--url", "https://far.example", "--key-file", "/key"],
        ),
    ],
)
def test_the_process_is_told_what_its_engine_needs(choice: EngineChoice, arguments: list[str]):
    assert choice.arguments() == arguments


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://localhost:8000", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:8000/", True),
        ("https://localhost", True),
        ("https://far.example", False),
        ("https://127.0.0.1.far.example", False),
    ],
)
def test_an_address_is_of_this_machine_or_has_tls(url: str, near: bool):
    assert is_near(url) is near
    EngineChoice(EngineKind.REMOTE, url).check()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (None, 'no "remoteUrl" is set'),
        ("", 'no "remoteUrl" is set'),
        ("far.example", "is no address"),
        ("http://127.0.0.1.far.example", "unencrypted; use https"),
        ("http://0.0.0.0:8000", "unencrypted; use https"),
        (f"https://ada:{KEY}@far.example", "must not hold a key"),
    ],
)
def test_a_remote_engine_without_a_safe_address_is_refused(url: str | None, words: str):
    with pytest.raises(EngineError, match=words) as caught:
        EngineChoice(EngineKind.REMOTE, url).check()
    assert KEY not in str(caught.value)
    EngineChoice(EngineKind.TORCH, url).check()


served = remote_server.served


def client_of(url: str, key_file: Path, seen: list[EngineStatus]) -> EngineClient:
    choice = EngineChoice(EngineKind.REMOTE, url, str(key_file))
    folder = tiny_checkpoint()
    return EngineClient(
        folder,
        on_status=seen.append,
        command=[*child_command(folder, None, None), *choice.arguments()],
        backoff_seconds=(0.05,),
    )


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(f"{KEY}\n")
    return tmp_path / "key"


@pytest.fixture
def seen() -> list[EngineStatus]:
    return []


@pytest_asyncio.fixture
async def client(served: Served, key_file: Path, seen: list[EngineStatus]):
    client = client_of(served.url, key_file, seen)
    await client.start()
    yield client
    await client.close()


@pytest.mark.asyncio
async def test_frames_of_a_remote_engine_come_through_the_process(client: EngineClient):
    last = (await asyncio.wait_for(frames_of(client, job()), 60))[-1]
    assert last.done is not None
    assert (last.done.kind, last.ids[0][:2]) == (DoneKind.MAX_STEPS, [90, 90])
    assert (await client.info()).device.startswith("127.0.0.1:")


@pytest.mark.asyncio
async def test_a_cancelled_job_hangs_up_on_the_server(client: EngineClient, served: Served):
    stream = client.submit(job(**LONG))
    await asyncio.wait_for(anext(stream), 60)
    await client.cancel("a")
    last = [frame async for frame in stream][-1]
    assert last.done is not None
    assert last.done.kind is DoneKind.CANCELLED
    assert await asyncio.to_thread(served.left.wait, 20)


@pytest.mark.asyncio
async def test_a_server_that_is_down_is_tried_again(
    served: Served, key_file: Path, seen: list[EngineStatus]
):
    served.server_close()
    client = client_of(served.url, key_file, seen)
    await client.start()
    end = time.monotonic() + 60
    while sum(s.state is EngineState.RESTARTING for s in seen) < 2:
        assert time.monotonic() < end, seen
        await asyncio.sleep(0.05)
    told = next(s.message for s in seen if s.state is EngineState.RESTARTING)
    assert f"{served.url}/ does not answer" in told
    await client.close()


@pytest.mark.asyncio
async def test_a_key_that_is_refused_is_not_tried_again_and_not_told(
    served: Served, tmp_path: Path, seen: list[EngineStatus]
):
    (tmp_path / "wrong").write_text("close sesame")
    client = client_of(served.url, tmp_path / "wrong", seen)
    await client.start()
    with pytest.raises(EngineError, match="refuses the key") as caught:
        await asyncio.wait_for(client.info(), 60)
    assert "close sesame" not in f"{caught.value} {seen}"
    assert seen[-1].state is EngineState.FAILED
    await client.close()
