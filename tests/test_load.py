"""A large file under many changes a second, for a short while."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.load.changes import RATE, load, slope
from tests import server_fixtures
from tests.replay_server import command

tiny = server_fixtures.tiny
MIB = 1 << 20
SECONDS = 5
GROWTH_MIB = 12
"""How much more memory five seconds may take; a copy of the file at each change is 2500 MiB."""
LOOP_MS = 20
"""Half of the loop's turns at least are in time, however busy the machine is."""


def test_a_large_file_under_many_changes_answers_every_request(tiny: Path) -> None:
    found = asyncio.run(load(command(tiny, "first"), seconds=SECONDS, size=5 * MIB))
    assert found.file_mib >= 5
    assert found.requests == found.changes == SECONDS * RATE
    assert found.unanswered == 0
    assert found.status == 0
    assert found.memory_mib[-1] - found.memory_mib[0] < GROWTH_MIB
    assert found.loop_lag.p50 < LOOP_MS
    assert found.loop_lag.count > 0


@pytest.mark.parametrize(
    ("memory", "wanted"),
    [([], 0.0), ([5.0] * 40, 0.0), ([n / 4 for n in range(40)], 60.0)],
)
def test_the_slope_of_memory_is_in_mebibytes_a_minute(memory: list[float], wanted: float) -> None:
    assert slope(memory) == pytest.approx(wanted)
