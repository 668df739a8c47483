"""How the engine's threads take turns on a processor with those who wait for a message."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from dg_engine import turns
from dg_engine.client import EngineClient

from tests.engine_fixtures import job, tiny_checkpoint

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux lets a program say how it takes turns"
)

NORMAL, BATCH, IDLE = os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE
SAID = """
import os, sys
from dg_engine import turns
os.sched_setscheduler(0, int(sys.argv[1]), os.sched_param(0))
turns.compute_in_turn()
print(os.sched_getscheduler(0))
turns.answer_at_once()
print(os.sched_getscheduler(0))
"""


@pytest.mark.parametrize(
    ("chosen", "computes", "answers"), [(NORMAL, BATCH, NORMAL), (IDLE, IDLE, IDLE)]
)
def test_a_thread_takes_turns_as_it_is_told_unless_the_user_said_how(
    chosen: int, computes: int, answers: int
) -> None:
    said = subprocess.run(
        [sys.executable, "-c", SAID, str(chosen)], stdout=subprocess.PIPE, text=True, check=True
    )
    assert [int(line) for line in said.stdout.split()] == [computes, answers]


def test_where_it_may_not_be_said_the_engine_runs_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def refused(pid: int, policy: int, param: object) -> None:
        asked.append(policy)
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refused)
    ran = threading.Thread(target=turns.compute_in_turn)
    ran.start()
    ran.join()
    assert asked == [BATCH]


def threads_of(process: int | None) -> list[int]:
    """The kernel's numbers of the threads of a process."""
    return [int(task.name) for task in Path(f"/proc/{process}/task").iterdir()]


@pytest.mark.asyncio
async def test_all_threads_of_an_engine_but_the_one_that_reads_compute_in_turn() -> None:
    client = EngineClient(tiny_checkpoint(), threads=2)
    await client.start()
    try:
        await client.info()
        assert [frame async for frame in client.submit(job())][-1].done is not None
        policies = Counter(map(os.sched_getscheduler, threads_of(client.pid)))
    finally:
        await client.close()
    assert policies[NORMAL] == 1
    assert policies[BATCH] >= 2
