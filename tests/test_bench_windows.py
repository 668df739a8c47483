"""The pages of the measures with many windows say what was counted."""

from __future__ import annotations

import pytest
from dg_lsp.bench.tally import Tally

from bench.fleet.__main__ import Row
from bench.fleet.__main__ import report as fleet_report
from bench.soak.__main__ import SAMPLE_SECONDS, Break, Sample, Soak, slope
from bench.soak.__main__ import report as soak_report
from bench.windows.__main__ import Busy, Round
from bench.windows.__main__ import report as windows_report


@pytest.mark.parametrize("growth", [0.0, 3.0])
def test_growth_is_told_by_the_minute(growth: float) -> None:
    minutes = [number * SAMPLE_SECONDS / 60 for number in range(600)]
    samples = [Sample(60 * m, 100 + growth * m, 20, 400, 50) for m in minutes]
    assert slope(samples, "windows_mib") == pytest.approx(growth, abs=0.01)
    assert slope(samples, "descriptors") == 0


def test_the_soak_names_its_faults_and_what_was_broken() -> None:
    soak = Soak(8, 60, 10)
    soak.samples = [Sample(float(n), 100, 20, 400, 50) for n in range(20)]
    soak.breaks = [Break(1, "daemon killed", 1.5), Break(2, "daemon killed", 0.5)]
    page = soak_report(soak, plotted=False)
    assert "| daemon killed | 2 | 1.5 |" in page
    assert "None." in page
    soak.counts.faults.append("w1: request 7 had 2 responses")
    assert "- w1: request 7 had 2 responses" in soak_report(soak, plotted=False)


def test_the_page_of_windows_says_what_was_counted() -> None:
    rounds = [
        Round(1, False, [80.0], 400.0, [10.0]),
        Round(2, False, [80.0, 81.0], 402.0, [10.0, 30.0]),
        Round(2, True, [80.0, 81.0], 402.0, [50.0], 700),
    ]
    busy = [Busy(False, [300.0], [310.0]), Busy(True, [90.0] * 2, [400.0] * 3)]
    page = windows_report(rounds, 30, busy, 83.4)
    assert "A second window takes 83 MiB in all" in page
    assert "| 2 | floods | 50 | 50 | 1 | 700 | 81 | 402 |" in page
    assert "| as the others | 300 | 300 | 1 | 310 | 310 | 1 |" in page
    assert "| in focus | 90 | 90 | 2 | 400 | 400 | 3 |" in page


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((100.0, 200.0), "2 editors stay within 300 ms at p90 here"),
        ((100.0, 900.0), "10,000 such engines"),
        ((400.0, 900.0), "No row stays within 300 ms"),
    ],
)
def test_capacity_is_the_last_row_within_the_bound(times: tuple[float, ...], words: str) -> None:
    rows = [Row(n + 1, 10.0, Tally(jobs=20, ms={"answer": [ms]})) for n, ms in enumerate(times)]
    assert words in fleet_report(rows, "a test", "bench.fleet")
    assert rows[1].jobs_a_second == 1.0
