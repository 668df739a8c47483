"""Every fault ends in a recovered state or one clear status, in bounded time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dg_engine.daemon import link

from tests import (
    faults_of_clocks,
    faults_of_gpus,
    faults_of_machine,
    faults_of_peers,
    faults_of_processes,
)
from tests.daemon_world import World, world
from tests.fault_table import FAULTS, RECOVERED_SECONDS, report

__all__ = [
    "faults_of_clocks",
    "faults_of_gpus",
    "faults_of_machine",
    "faults_of_peers",
    "faults_of_processes",
    "world",
]


@pytest.mark.asyncio
@pytest.mark.parametrize("what", FAULTS)
async def test_a_fault_is_survived(world: World, what: str) -> None:
    row = FAULTS[what]
    seconds = await row.inject(world)
    assert seconds < RECOVERED_SECONDS
    report(row, seconds)


def test_the_table_is_long_enough() -> None:
    assert len(FAULTS) >= 70


def test_a_clock_that_jumps_is_not_looked_at() -> None:
    for module in Path(link.__file__).parent.glob("*.py"):
        assert not re.search(r"\btime\.time\b|\bdatetime\b", module.read_text("utf-8")), module.name
