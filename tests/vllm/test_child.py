"""vLLM in the engine's process, as the server starts it, and what is left when that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

import psutil
from dg_engine.choice import EngineChoice, EngineKind
from dg_engine.client import EngineClient
from dg_engine.links import child_command

from tests.engine_contract import LONG, frames_of
from tests.engine_fixtures import job
from tests.vllm.test_parity import JOBS, assert_same, solved

pytestmark = pytest.mark.asyncio(loop_scope="session")
ENDED_SECONDS = 60.0
NAMES = ("pinned", "raced widths", "two blocks")


def runs(process: psutil.Process) -> bool:
    """Whether it goes on; what has ended may wait for somebody to ask."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.timeout(900)
async def test_jobs_run_there_and_nothing_is_left_of_it_when_it_is_killed(
    checkpoint: Path, solver: Any
):
    choice = EngineChoice(EngineKind.VLLM)
    command = [*child_command(checkpoint, None, "float32"), *choice.arguments()]
    client = EngineClient(checkpoint, command=command, backoff_seconds=(600.0,))
    await client.start()
    assert (await client.info()).device == "cpu"
    for name in NAMES:
        canvas_job = job(id=name, **JOBS[name])
        # A draft may be replaced by the next on its way, so only the answers are compared.
        found = await frames_of(client, canvas_job)
        # Beside the loop, which hears the engine's signs of life.
        expected = await asyncio.to_thread(solved, solver, canvas_job)
        assert_same(found[-1:], expected[-1:])

    child = client.pid
    assert child is not None
    started = psutil.Process(child).children(recursive=True)
    assert len(started) > 1
    stream = client.submit(job(**LONG))
    assert (await anext(stream)).done is None
    os.kill(child, signal.SIGKILL)
    last = [frame async for frame in stream][-1]
    assert last.done is not None
    assert "signal 9" in last.done.message
    end = time.monotonic() + ENDED_SECONDS
    while left := [process for process in started if runs(process)]:
        assert time.monotonic() < end, left
        await asyncio.sleep(0.2)
    await client.close()
