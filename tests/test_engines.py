"""The engines keep the contract, in this process and in one of their own; the child's faults."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from dg_engine.client import EngineClient, EngineState, EngineStatus
from dg_engine.engine import EngineError
from dg_engine.job import Done, DoneKind, Frame
from dg_engine.outbox import Outbox
from dg_engine.torch_engine import TorchEngine
from dg_engine.wire import (
    Cancel,
    Close,
    Ping,
    Pong,
    Progress,
    Submit,
    WireError,
    body_length,
    pack,
    unpack_reply,
    unpack_request,
)

from tests.engine_contract import LONG, EngineContract, contract, frames_of
from tests.engine_fixtures import job, load_tiny, tiny_checkpoint


@contract
class TestTorchEngine(EngineContract):
    @pytest_asyncio.fixture
    async def engine(self):
        engine = TorchEngine(load_tiny())
        yield engine
        await engine.close()


@contract
class TestEngineClient(EngineContract):
    @pytest_asyncio.fixture
    async def engine(self):
        # bf16 rounds a prompt read in pieces differently; equality is a matter of float32.
        client = EngineClient(tiny_checkpoint(), threads=1, dtype="float32")
        await client.start()
        yield client
        await client.close()


async def until(condition, seconds: float = 20.0) -> None:
    """Wait for what another process does; fails rather than hangs."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


@pytest.mark.asyncio
async def test_a_killed_child_ends_its_jobs_is_reported_and_comes_back():
    seen: list[EngineStatus] = []
    client = EngineClient(
        tiny_checkpoint(), threads=1, on_status=seen.append, backoff_seconds=(0.05,)
    )
    await client.start()
    await client.info()
    first = client.pid
    assert first is not None
    stream = client.submit(job(**LONG))
    await anext(stream)
    os.kill(first, signal.SIGKILL)
    killed = time.monotonic()
    last = [frame async for frame in stream][-1]
    assert time.monotonic() - killed < 1.0
    assert last.done is not None
    assert last.done.kind is DoneKind.ERROR
    assert "signal 9" in last.done.message
    assert [s.state for s in seen][-1] in (EngineState.RESTARTING, EngineState.LOADING)
    again = await asyncio.wait_for(frames_of(client, job(id="again")), 60)
    assert again[-1].done is not None
    assert again[-1].done.kind is DoneKind.MAX_STEPS
    assert client.pid != first
    await client.close()


@pytest.mark.asyncio
async def test_a_job_submitted_while_the_model_loads_waits_for_it():
    client = EngineClient(tiny_checkpoint(), threads=1)
    await client.start()
    assert client.status.state is EngineState.LOADING
    frames = await asyncio.wait_for(frames_of(client, job()), 60)
    assert frames[-1].done is not None
    assert frames[-1].done.kind is DoneKind.MAX_STEPS
    await client.close()


@pytest.mark.asyncio
async def test_files_of_the_project_that_is_open_are_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("numbers.py", "torch.py", "safetensors.py"):
        (tmp_path / name).write_text("open('it ran', 'w').close()\nraise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    client = EngineClient(tiny_checkpoint(), threads=1)
    await client.start()
    assert (await asyncio.wait_for(client.info(), 60)).vocab_size == 300
    await client.close()
    assert not (tmp_path / "it ran").exists()


@pytest.mark.asyncio
async def test_closing_leaves_no_process():
    client = EngineClient(tiny_checkpoint(), threads=1)
    await client.start()
    await client.info()
    pid = client.pid
    assert pid is not None
    await client.close()
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert client.status.state is EngineState.CLOSED
    (frame,) = await frames_of(client, job())
    assert frame.done is not None
    assert frame.done.kind is DoneKind.ERROR


@pytest.mark.asyncio
async def test_a_model_that_cannot_load_is_one_sentence_and_is_not_tried_again(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    seen: list[EngineStatus] = []
    client = EngineClient(tmp_path, on_status=seen.append, backoff_seconds=(0.01,))
    await client.start()
    with pytest.raises(EngineError, match="'llama' model, not 'diffusion_gemma'"):
        await asyncio.wait_for(client.info(), 30)
    (frame,) = await frames_of(client, job())
    assert frame.done is not None
    assert frame.done.kind is DoneKind.ERROR
    assert [s.state for s in seen] == [EngineState.LOADING, EngineState.FAILED]
    await client.close()


@pytest.mark.asyncio
async def test_a_child_that_crashes_at_once_is_started_with_growing_pauses():
    seen: list[EngineStatus] = []
    crash = [sys.executable, "-c", "import sys; print('no GPU left', file=sys.stderr); sys.exit(9)"]
    client = EngineClient(
        Path("none"), on_status=seen.append, command=crash, backoff_seconds=(0.01, 0.02, 0.03)
    )
    await client.start()
    await until(lambda: len(seen) >= 8)
    pauses = [s.retry_in_s for s in seen if s.state is EngineState.RESTARTING]
    assert pauses[:4] == [0.01, 0.02, 0.03, 0.03]
    restarting = next(s for s in seen if s.state is EngineState.RESTARTING)
    assert "exit code 9" in restarting.message
    assert "no GPU left" in restarting.message
    await client.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("noise", ["b'hello'", "b'\\xff\\xff\\xff\\xff'", "b'\\0\\0\\0\\2{}'"])
async def test_a_child_that_speaks_nonsense_is_ended_not_believed(noise: str):
    seen: list[EngineStatus] = []
    program = f"import sys, time; sys.stdout.buffer.write({noise}); sys.stdout.flush(); sys.exit(0)"
    client = EngineClient(
        Path("none"),
        on_status=seen.append,
        command=[sys.executable, "-c", program],
        backoff_seconds=(5.0,),
    )
    await client.start()
    await until(lambda: any(s.state is EngineState.RESTARTING for s in seen))
    assert client.pid is None
    await client.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
def test_the_child_dies_with_a_parent_that_is_killed():
    program = textwrap.dedent(
        f"""
        import asyncio
        from pathlib import Path
        from dg_engine.client import EngineClient

        async def main():
            client = EngineClient(Path({str(tiny_checkpoint())!r}), threads=1)
            await client.start()
            await client.info()
            print(client.pid, flush=True)
            await asyncio.sleep(600)

        asyncio.run(main())
        """
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    gone, alive = psutil.wait_procs([child], timeout=2)
    assert gone
    assert not alive


def frame(job_id: str, step: int, done: bool = False) -> Frame:
    return Frame(job_id, step, [[1]], done=Done(DoneKind.CONVERGED) if done else None)


def test_a_slow_reader_finds_only_the_newest_draft_of_each_job():
    outbox = Outbox()
    for step in range(1000):
        outbox.put_frame(frame("a", step))
        outbox.put_frame(frame("b", step))
    outbox.put(Pong(1, 2))
    outbox.put_frame(frame("a", 1000, done=True))
    assert len(outbox) == 3
    outbox.close()
    taken = list(iter(outbox.take, None))
    assert taken == [
        Progress(frame("b", 999)),
        Pong(1, 2),
        Progress(frame("a", 1000, done=True)),
    ]


def test_last_frames_are_never_dropped():
    outbox = Outbox()
    for number in range(5):
        outbox.put_frame(frame("a", number, done=True))
    assert len(outbox) == 5


@pytest.mark.parametrize("message", [Submit(job()), Cancel("a"), Close(), Ping(3)])
def test_requests_survive_the_wire(message):
    packed = pack(message)
    assert body_length(packed[:4]) == len(packed) - 4
    assert unpack_request(packed[4:]) == message


@pytest.mark.parametrize("message", [Pong(1, 0), Progress(frame("a", 3, done=True))])
def test_replies_survive_the_wire(message):
    assert unpack_reply(pack(message)[4:]) == message


@pytest.mark.parametrize("body", [b"", b"{}", b"\x81\xa4type\xa4none", pack(Pong(1, 0))[4:]])
def test_what_is_no_request_is_refused(body: bytes):
    with pytest.raises(WireError):
        unpack_request(body)
