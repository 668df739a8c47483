"""What the server itself takes for a completion and a change is told from what its loop did."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from dg_lsp.documents import Document
from dg_lsp.positions import Encoding

from bench.latency import overhead
from bench.latency.overhead import Noted, completion_of, edits, layer, library_text, ran
from bench.latency.through import ROOT

NOTED: Noted = [
    # the callback that reads the request, and makes the job
    ("receive request", 0.001, 0.0011),
    ("of it context", 0.0012, 0.0015),
    ("engine", 0.002, 0.102),
    ("wait", 0.0016, 0.0019),
    ("loop", 0.0008, 0.0025),
    ("processor", 0.0008, 0.0023),
    # what runs while the engine works
    ("loop", 0.050, 0.054),
    ("processor", 0.050, 0.053),
    # the callback that takes the last frame, and the one that writes the answer
    ("of it suggest", 0.1022, 0.1029),
    ("find", 0.0012, 0.1030),
    ("loop", 0.1015, 0.1031),
    ("processor", 0.1015, 0.1030),
    ("write answer", 0.1034, 0.1036),
    ("loop", 0.1032, 0.1037),
    ("processor", 0.1032, 0.1037),
    # nobody's of this request
    ("loop", 0.2, 0.3),
    ("processor", 0.2, 0.3),
]


def test_a_completion_is_what_lies_between_reading_and_writing_but_for_the_engine() -> None:
    found = completion_of(NOTED, new=True, shown=True)
    assert found is not None
    assert found.between == pytest.approx(102.9 - 100 - 0.3)
    assert found.loop == pytest.approx(1.7 + 4 + 1.6 + 0.5)
    assert found.processor == pytest.approx(1.5 + 3 + 1.5 + 0.5)
    assert found.own == pytest.approx(1.5 + 1.5 + 0.5)  # not what ran beside the engine
    assert found.stages["message"] == pytest.approx(0.3)
    assert found.stages["context"] == pytest.approx(0.3)
    assert found.stages["filters"] == pytest.approx(0.7)
    assert found.stages["answer"] == pytest.approx(0.7)
    assert found.stages["loop while the engine works"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("meant_ms", "delays_ms"),
    [(0.0, 2.6), (0.3, 2.6), (0.5, 2.4), (5.0, 1.8)],
)
def test_what_is_prepared_in_the_time_of_the_wait_delays_nothing(
    meant_ms: float, delays_ms: float
) -> None:
    noted: Noted = [*NOTED, ("meant", 0.0016, 0.0016 + meant_ms / 1e3)]
    found = completion_of(noted, new=True, shown=True)
    assert found is not None
    assert found.added == pytest.approx(delays_ms)


def test_what_the_engine_was_not_asked_for_is_no_completion_of_it() -> None:
    typed_through = [one for one in NOTED if one[0] != "engine"]
    assert completion_of(typed_through, new=False, shown=True) is None


def test_what_ran_is_what_began_and_ended_in_between() -> None:
    assert ran(NOTED, 0.049, 0.055) == pytest.approx((4, 3))
    assert ran(NOTED, 0.051, 0.055) == (0, 0)


def test_changes_take_each_other_back() -> None:
    text = library_text(200_000)
    assert len(text) == 200_000
    document = Document.of("file:///a.py", 0, "python", text)
    made = list(edits(text.split("\n"), 60, 1))
    assert len({edit.kind for edit in made}) == 6
    for version, edit in enumerate(made, 1):
        before = document
        document = document.changed([edit.change], version, Encoding.UTF16)
        assert document.lines.count != before.lines.count or document.lines != before.lines
        if edit.kind.endswith("erased"):
            assert document.lines.text() == text
    assert len(layer(text, 40, 1)) == 40


def test_a_change_is_counted_however_late_the_server_gets_to_it() -> None:
    noted = [("loop", 1.0, 1.002), ("receive change", 1.5, 1.5004), ("loop", 1.4999, 1.501)]
    assert overhead.handled(noted, 1.02) == 1.501
    assert overhead.handled(noted, 1.6) == 1.6
    assert overhead.ran(noted, 0.9, overhead.handled(noted, 1.02))[0] == pytest.approx(3.1)


def test_the_real_server_is_measured_at_both(tmp_path: Path) -> None:
    options = argparse.Namespace(
        threads=1,
        model=None,
        completions=3,
        changes=20,
        mib=0.05,
        changed_mib=0.1,
        pause_ms=0,
        seed=1,
        json=tmp_path / "found.json",
    )
    completions, changes = overhead.measure(options, {"this": ROOT})
    assert "3 completions by the engine" in completions
    assert "| from reading to writing | 3 |" in completions
    assert "| loop, behind a pause | 20 |" in changes
    assert "| loop, behind another one | 19 |" in changes
    found = overhead.json.loads(options.json.read_text())
    for asked in found["completions"]["this"]:
        assert 0 < asked["own"] < asked["processor"] + 1e-9
        assert asked["between"] > 0
    assert all(made["loop"] > 0 for made in found["changes"]["this"])
