"""A large file under many changes a second, for a short while."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.load.changes import RATE, Load, Times, by_minute, load, report, slope
from tests import server_fixtures
from tests.replay_server import command

tiny = server_fixtures.tiny
MIB = 1 << 20
SECONDS = 5
GROWTH_MIB = 12
"""How much more memory five seconds may take; a copy of the file at each change is 2500 MiB."""
LOOP_MS = 20
"""Half of the loop's turns at least are in time; half as much where what other programs of the
machine take is known and left out."""


def test_a_large_file_under_many_changes_answers_every_request(tiny: Path) -> None:
    found = asyncio.run(load(command(tiny, "first"), seconds=SECONDS, size=5 * MIB))
    assert found.file_mib >= 5
    assert found.requests == found.changes == SECONDS * RATE
    assert found.unanswered == 0
    assert found.status == 0
    assert found.memory_mib[-1] - found.memory_mib[0] < GROWTH_MIB
    assert found.loop_lag.count > 0
    if found.own_lag.count:  # Linux tells how long there was no processor
        assert found.own_lag.p50 < LOOP_MS / 2
    else:
        assert found.loop_lag.p50 < LOOP_MS


@pytest.mark.parametrize(
    ("samples", "wanted"),
    [(1, [0.0]), (240, [0.0, 239.0]), (241, [0.0, 240.0]), (600, [0.0, 240.0, 480.0, 599.0])],
)
def test_memory_is_told_by_the_minute_and_at_the_end(samples: int, wanted: list[float]) -> None:
    assert by_minute([float(number) for number in range(samples)]) == wanted


def test_a_report_says_how_busy_the_machine_was_and_what_the_lag_is_without_it() -> None:
    times = Times.of([1.0, 2.0, 30.0])
    found = Load(
        *(60.0, 5.0, 6000, 100.0, times, Times.of([0.5]), 0.75, times, 0.2, [80.0] * 480, 0.01),
        *(6000, 1, 0),
    )
    text = report(found, "somewhere")
    assert "5999 of 6000 requests had exactly one response" in text
    assert "75 % of the time" in text
    assert "| the same, without waiting for a processor | 0.5 |" in text
    assert "| minute | 0 | 1 | end |" in text


@pytest.mark.parametrize(
    ("memory", "wanted"),
    [([], 0.0), ([5.0] * 40, 0.0), ([n / 4 for n in range(40)], 60.0)],
)
def test_the_slope_of_memory_is_in_mebibytes_a_minute(memory: list[float], wanted: float) -> None:
    assert slope(memory) == pytest.approx(wanted)
