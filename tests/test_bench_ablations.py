"""One thing changed at a time on the same holes: paired differences, the engines, the page."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import pytest
import torch
from dg_engine.job import MaskRule
from dg_engine.loader import load
from dg_lsp.bench.holes import Hole
from dg_lsp.bench.outcome import Filled, outcome_of
from dg_lsp.bench.paired import flips, mean_difference, share_difference

from bench.ablation_tables import Loss, Record, Section, page
from bench.ablations import (
    MEASURED,
    QUESTIONS,
    TOP_K,
    Ablations,
    Signal,
    Variant,
    measure,
    signal_of,
    with_window,
)
from tests.bench_fixtures import model

__all__ = ["model"]

HOLES = [
    Hole(
        "a",
        "# read in pieces\n" * 30 + "def f(x):\n    ",
        "return x",
        "\n\ny = f(1)\n",
        "a.py",
        "line",
    ),
    Hole("b", "a = 1\n", "b = a", "\n\nprint(b)\n", "a.py", "line"),
    Hole("c", "total = a ", "+ b", "\n\nprint(total)\n", "a.py", "rest"),
]


def test_flips_count_what_one_has_and_the_other_lacks() -> None:
    assert flips([True, True, False, False], [True, False, True, True]) == (2, 1)


@pytest.mark.parametrize(
    ("gained", "lost", "holes", "expected"),
    [
        # By hand from the paper's formula: (c - b) / (n + 2), sqrt(b + c + 1 - d^2 / (n + 2)).
        (0, 0, 200, (0.0, -0.009703, 0.009703)),
        (10, 4, 200, (0.03, -0.007652, 0.067058)),
    ],
)
def test_a_share_differs_by_agresti_and_mins_interval(
    gained: int, lost: int, holes: int, expected: tuple[float, float, float]
) -> None:
    after = [True] * gained + [False] * (holes - gained)
    before = [False] * (holes - lost) + [True] * lost
    assert share_difference(before, after) == pytest.approx(expected, abs=1e-5)
    swapped = share_difference(after, before)
    assert swapped == pytest.approx((-expected[0], -expected[2], -expected[1]), abs=1e-5)


def test_the_interval_holds_the_truth_about_19_times_in_20() -> None:
    draw = random.Random(1)
    held = 0
    for _ in range(400):
        pairs = [(u < 0.4, 0.05 <= u < 0.42) for u in (draw.random() for _ in range(200))]
        found = share_difference([b for b, _ in pairs], [a for _, a in pairs])
        held += found.low <= -0.03 <= found.high
    assert 0.92 <= held / 400 <= 0.99


def test_pairs_that_move_alike_have_a_narrow_interval() -> None:
    values = [0.1, 0.9, 0.4, 0.6]
    found = mean_difference(values, [value + 0.05 for value in values])
    assert found == pytest.approx((0.05, 0.05, 0.05))
    apart = mean_difference(values, [0.2, 0.7, 0.9, 0.5])
    assert apart.low < apart.mean < apart.high
    with pytest.raises(ValueError, match="two holes"):
        mean_difference([0.5], [0.5])


def test_the_mask_rules_part_in_the_narrow_window_only(model: Path) -> None:
    def logits(window: int | None, rule: MaskRule) -> torch.Tensor:
        with with_window(model, window) as folder, torch.inference_mode():
            device = torch.device("cpu")
            loaded = load(folder, device=device, dtype=torch.float32, mask_rule=rule).solver.model
            _, past = loaded.encode(torch.arange(20, 50), None)
            return loaded.logits(loaded.decode(torch.arange(60, 76)[None], None, past, None))

    for window, same in ((None, True), (24, False)):
        anchored, symmetric = (logits(window, rule) for rule in MaskRule)
        assert torch.allclose(anchored, symmetric) == same


def test_a_signal_is_the_models_own_or_nothing(model: Path) -> None:
    loaded = load(model, device=torch.device("cpu"), dtype=torch.float32).solver.model
    processed = 5 * torch.randn(2, 3, 300)
    with torch.inference_mode():
        plain = loaded.soft_embedding(processed)
        wide = signal_of(loaded, Signal.WIDE)(processed)
        none = signal_of(loaded, Signal.NONE)(processed)
    torch.testing.assert_close(wide, plain, atol=1e-4, rtol=1e-4)
    assert none.shape == plain.shape
    assert none.dtype == plain.dtype
    assert not none.any()


def test_every_question_is_measured_and_the_cache_spares_the_engines(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache.jsonl"
    pages: list[str] = []
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            ablations = Ablations(model, cache, stack)
            found = asyncio.run(measure(ablations, HOLES, list(QUESTIONS)))
        sections = [question.section(found[name]) for name, question in QUESTIONS.items()]
        pages.append(page(sections, model="tiny", threads=1))
        # Nothing is computed from here on.
        monkeypatch.setattr("bench.ablations.METHODS", {})
    assert pages[0] == pages[1]
    assert pages[0].count("| after step |") == 1
    counts = {len(r) for name in found if name != "steps" for p in found[name].values()
              for r in p.values()}  # fmt: skip
    assert counts == {len(HOLES)}
    assert all(len(r) == 2 for part in found["steps"].values() for r in part.values())
    full = found["top-k"]["known length, 8 steps"]["full sum"]
    assert QUESTIONS["top-k"].parts["known length, 8 steps"]["full sum"] == MEASURED
    for record in full:
        # The prompt was read before, for this row as for all others.
        assert record.outcome.forwards == record.outcome.steps + 1
        assert len(record.losses) == record.outcome.steps - 1
        for by_k in record.losses:
            dropped = [sum(by_k[k].dropped) for k in TOP_K]
            assert dropped == sorted(dropped, reverse=True)
            assert all(-1e-5 <= x <= 1 for k in TOP_K for x in by_k[k].dropped)


def test_a_question_takes_as_many_holes_of_each_kind_as_it_says(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = QUESTIONS["pins"]._replace(holes=1)
    monkeypatch.setitem(QUESTIONS, "pins", few)
    with contextlib.ExitStack() as stack:
        found = asyncio.run(measure(Ablations(model, None, stack), HOLES, ["pins"]))
    ids = [r.outcome.id for r in found["pins"]["default"]["zero"]]
    assert ids == ["a", "c"]


def test_one_run_is_one_row_wherever_it_stands(model: Path) -> None:
    runs = [run for q in QUESTIONS.values() for rows in q.parts.values() for run in rows.values()]
    assert len(set(runs)) < len(runs)
    for question in QUESTIONS.values():
        for rows in question.parts.values():
            assert len(set(rows.values())) == len(rows) >= 2
    assert Variant() in {run.variant for run in runs}


def test_the_page_tells_the_difference_to_the_first_row() -> None:
    hole = Hole("a", "x = ", "1", "\n", "a.py")

    def records(*texts: str, losses: tuple[dict[int, Loss], ...] = ()) -> list[Record]:
        return [
            Record(str(n), outcome_of(hole, Filled([text], 2, 3, 1.0)), list(losses))
            for n, text in enumerate(texts)
        ]

    lost = ({4: Loss([0.5, 0.25], [0.1, 0.3])}, {4: Loss([0.0], [0.0])})
    rows = {"all": records("1", "1", "2", "2", losses=lost), "few": records("1", "1", "1", "2")}
    lines = page([Section("T", "", {"part": rows}, losses=True)], model="m", threads=1).splitlines()
    few = next(line for line in lines if line.startswith("| few"))
    assert few.split(" | ")[1:4] == ["75.0%", "+25.0 (-27.6 to +60.9)", "1 / 0"]
    assert few.split(" | ")[6] == "75.0%"
    assert "| 1 | 4 | 0.375 / 0.500 | 0.200 / 0.300 |" in lines
    assert "| 2 | 4 | 0.000 / 0.000 | 0.000 / 0.000 |" in lines
