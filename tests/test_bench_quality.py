"""Held-out holes: methods, outcomes, the cache of a run, and when an answer is shown."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
import torch
from dg_engine.loader import load
from dg_engine.tokenizer import Tokenizer
from dg_engine.torch_engine import TorchEngine
from dg_lsp.bench.cases import Subject, case_of, last_frame, shown
from dg_lsp.bench.curve import curve_of, point_at, threshold_for
from dg_lsp.bench.drive import Plan, drive, fingerprint, sampled
from dg_lsp.bench.figures import Digest, digest_of, figures_of
from dg_lsp.bench.holes import FILES, Hole, holes_of
from dg_lsp.bench.humaneval import read_tasks
from dg_lsp.bench.methods import METHODS, WIDTHS, known_methods
from dg_lsp.bench.outcome import Filled, Outcome, outcome_of
from dg_lsp.bench.score import parses_between
from dg_lsp.bench.tables import markdown
from dg_lsp.jobs import filled_in
from dg_lsp.prompts import prompt_format_for

from tests.bench_fixtures import model
from tests.checkpoints import write_checkpoint

__all__ = ["model"]

HOLES = {
    "line": Hole("a", "def f(x):\n    ", "return x", "\n\ny = f(1)\n", "a.py", "line"),
    "rest": Hole("f", "def f(x):\n    return ", "x + 123", "\n\ny = f(1)\n", "a.py", "rest"),
    "lines": Hole("b", "def f(x):\n    ", "x += 1\n    return x", "\n\nf(1)\n", "a.py", "lines"),
    "span": Hole("c", "def f(x):\n    ret", "urn x +", " 1\n", "a.py", "span"),
    "two": Hole("d", "a = ", "1", "\n", "a.py", "two", "\nb = ", "a + 1"),
    "quiet": Hole("e", "a = 1", "", "\nb = 2\n", "a.py", "quiet"),
}


@pytest_asyncio.fixture
async def subject(model: Path) -> AsyncIterator[Subject]:
    tokenizer = Tokenizer(model)
    prompts = prompt_format_for(tokenizer, model)
    engine = TorchEngine(load(model, device=torch.device("cpu"), dtype=torch.float32))
    yield Subject(engine, tokenizer, prompts, prompts.settings.within(64), 64, {})
    await engine.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", HOLES)
async def test_every_method_fills_the_kinds_that_it_is_for(kind: str, subject: Subject) -> None:
    hole = HOLES[kind]
    fitting = {name: method for name, method in METHODS.items() if method.fits(kind)}
    assert len(fitting) >= 4
    for name, method in fitting.items():
        filled = await method.solve(subject, hole)
        assert filled is not None, name
        assert len(filled.texts) == (2 if kind == "two" else 1), name
        assert filled.forwards >= 1, name
        outcome = outcome_of(hole, filled)
        assert 0 <= outcome.similarity <= 1
        if kind in {"line", "quiet"}:
            assert "\n" not in outcome.text, name


@pytest.mark.asyncio
async def test_the_first_step_chooses_one_width_and_pays_for_both_jobs(subject: Subject) -> None:
    filled = await METHODS["8 widths, 4 steps, by first step"].solve(subject, HOLES["line"])
    assert filled is not None
    assert filled.steps <= 1 + 4
    assert filled.forwards >= filled.steps


@pytest.mark.asyncio
async def test_the_best_of_all_is_the_right_one_wherever_it_is_ranked(subject: Subject) -> None:
    from dg_lsp.bench.methods import raced

    seeded = msgspec.structs.replace(subject.settings, seed=1)
    subject = subject._replace(settings=seeded)
    case = case_of(HOLES["rest"], subject)
    frame, _ = await last_frame(subject.engine, raced(8, 2, alternatives=9)(case))
    assert frame is not None
    texts = [
        shown(subject.prompts.answer(filled_in(case.job, ids, width)), case)
        for ids, width in zip(frame.ids, frame.widths, strict=True)
    ]
    truth = next(text for text in reversed(texts) if text and text != texts[0])
    method = METHODS["8 widths, 2 steps, the best of all"]
    for wanted, found in ((truth, truth), ("none of them", texts[0])):
        filled = await method.solve(subject, msgspec.structs.replace(HOLES["rest"], middle=wanted))
        assert filled is not None
        assert filled.texts == [found]


@pytest.mark.asyncio
async def test_a_warm_start_is_held_against_a_cold_one(subject: Subject) -> None:
    filled = await METHODS["warm start after 2 characters"].solve(subject, HOLES["line"])
    assert filled is not None
    assert filled.warm is not None
    assert filled.typed == 2
    assert filled.warm.agrees or filled.forwards == filled.warm.cold_forwards
    nothing_left = msgspec.structs.replace(HOLES["line"], middle="ab")
    assert await METHODS["warm start after 2 characters"].solve(subject, nothing_left) is None


@pytest.mark.asyncio
async def test_raced_widths_differ_by_the_size_of_the_hole(subject: Subject) -> None:
    from dg_lsp.bench.methods import widths_of

    line, block = (case_of(HOLES[kind], subject) for kind in ("line", "lines"))
    assert widths_of(line, 4) == WIDTHS[True][4]
    assert max(widths_of(block, 8)) > max(widths_of(line, 8))


def test_the_checkout_has_every_kind_of_hole() -> None:
    for kind in FILES:
        holes = holes_of([kind])
        assert len(holes) >= (300 if kind == "quiet" else 250)
        assert {hole.kind for hole in holes} == {kind}
        assert len({hole.id for hole in holes}) == len(holes)
        assert all(hole.middle for hole in holes) == (kind != "quiet")
        assert all(bool(hole.second) == (kind == "two") for hole in holes)


def test_limits_count_by_kind() -> None:
    assert [h.kind for h in holes_of(["line", "rest", "quiet"], 2)].count("rest") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return x + 1", (True, True, False)),
        ("return x + 1  ", (True, True, False)),
        ("return (", (False, False, False)),
        ("return x + 1\n\ny = f(1)", (False, True, True)),
    ],
)
def test_an_outcome_is_exact_parses_and_does_not_repeat(
    text: str, expected: tuple[bool, bool, bool]
) -> None:
    hole = Hole("a", "def f(x):\n    ", "return x + 1", "\n\ny = f(1)\n", "a.py")
    outcome = outcome_of(hole, Filled([text], 1, 2, 3.0))
    assert (outcome.exact, outcome.parses, outcome.repeats_suffix) == expected


def test_blanks_count_where_the_line_goes_on() -> None:
    hole = Hole("a", "x = ", "1 + ", "2\n", "a.py", "span")
    assert outcome_of(hole, Filled(["1 + "], 1, 1, 1.0)).exact
    assert not outcome_of(hole, Filled(["1 +"], 1, 1, 1.0)).exact


def test_one_of_two_holes_is_half_right() -> None:
    outcome = outcome_of(HOLES["two"], Filled(["1", "a"], 1, 1, 1.0))
    assert (outcome.exact, outcome.right, outcome.parses) == (False, 0.5, True)


@pytest.mark.parametrize(
    ("prefix", "suffix", "expected"),
    [
        ("a = 1\nb = ", "\n", True),
        ("  cut in the middle\ndef f():\n    return ", "\n\ndef g(:", True),
        ("def f():\n    return (", "\n\ndef g(:", None),
    ],
)
def test_a_cut_program_is_looked_at_as_far_as_it_parses(
    prefix: str, suffix: str, expected: bool | None
) -> None:
    assert parses_between(prefix, "1", "2", suffix) is expected
    if expected:
        assert parses_between(prefix, "1", "1)", suffix) is False


def outcome(kind: str, confidence: float, *, exact: bool = False, text: str = "x") -> Outcome:
    return Outcome(
        f"{kind}{confidence}", kind, text, exact, 1.0, False, confidence, 1, 2, 3, 4.0, right=exact
    )


def test_the_threshold_keeps_the_quiet_cases_silent() -> None:
    quiet = [outcome("quiet", -number / 10) for number in range(50)]
    others = [outcome("line", -0.05, exact=True), outcome("rest", -0.3), outcome("line", -3.0)]
    curve = curve_of([*quiet, *others, outcome("span", 0.0)], "mean")
    assert curve is not None
    assert (curve.quiet, curve.others) == (50, 3)
    assert curve.chosen.quiet_silent == pytest.approx(0.96)
    assert curve.chosen.shown == pytest.approx(1 / 3)
    assert curve.chosen.right == 1.0
    assert curve.points[0].quiet_silent == 0.0
    assert curve.points[0].shown == 1.0
    silent = [point.quiet_silent for point in curve.points]
    assert silent == sorted(silent)


def test_cases_without_an_answer_are_silent_at_any_threshold() -> None:
    empty = [outcome("quiet", 0.0, text="") for _ in range(10)]
    assert threshold_for(empty, lambda o: o.confidence) == 0.0
    assert point_at(empty, [outcome("line", -9.0)], lambda o: 1.0, 0.0).quiet_silent == 1.0


def test_a_digest_survives_its_file_and_becomes_tables() -> None:
    results = {
        "default": [
            outcome("line", -0.1, exact=True),
            outcome("rest", -1.0),
            outcome("quiet", -2.0),
        ]
    }
    fields = {"machine": "m", "threads": 1, "note": "3 holes.", "twin": None}
    digest = digest_of(results, bench="quality", model="tiny", processes=4, **fields)
    again = msgspec.json.decode(msgspec.json.encode(digest), type=Digest)
    assert again == digest
    assert digest.groups["one line"]["default"].by_kind == {"line": 1.0, "rest": 0.0}
    text = markdown(digest)
    assert "| default | 50.0% | 100.0% | 0.0% |" in text
    assert "times are not comparable" in text
    assert "times are not comparable" not in markdown(
        digest_of(results, bench="quality", model="tiny", processes=1, **fields)
    )


def test_figures_of_nothing_are_zero() -> None:
    assert figures_of([]).exact == 0


def test_a_sample_is_fixed_by_its_seed() -> None:
    holes = [Hole(str(n), "", "x", "", "a.py", kind) for kind in ("line", "span") for n in range(9)]
    drawn = sampled(holes, 3, 1)
    assert drawn == sampled(holes, 3, 1) != sampled(holes, 3, 2)
    assert [hole.kind for hole in drawn] == ["line"] * 3 + ["span"] * 3
    assert sampled(holes, None, 1) == holes


@pytest.mark.asyncio
async def test_a_run_goes_on_where_it_was_broken_off(
    subject: Subject, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.asynccontextmanager
    async def opened(*_: object) -> AsyncIterator[Subject]:
        yield subject

    monkeypatch.setattr("dg_lsp.bench.drive.opened", opened)
    cache = tmp_path / "cache.jsonl"
    plan = Plan(
        model, [HOLES["line"], HOLES["quiet"]], ["default", "known length, 1 step"], cache=cache
    )
    first = await drive(plan)
    assert {name: len(found) for name, found in first.items()} == {
        "default": 2,
        "known length, 1 step": 1,
    }
    lines = cache.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    cache.write_bytes(b"".join(lines[:2]) + lines[2][:20])
    again = await drive(msgspec.structs.replace(plan, processes=2))
    assert len(cache.read_bytes().splitlines()) == 3
    assert [o.text for o in again["default"]] == [o.text for o in first["default"]]
    # The times of outcomes that were kept are those of the first run.
    assert again["default"][0].ms == first["default"][0].ms


def test_another_checkpoint_has_another_fingerprint(model: Path, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, canvas_length=64, max_position_embeddings=2048, seed=1)
    assert fingerprint(model) == fingerprint(model) != fingerprint(tmp_path)


def test_a_cache_that_is_none_says_so(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.jsonl"
    cache.write_text("nonsense\n{}\n")
    with pytest.raises(ValueError, match=r"cache\.jsonl:1: .*; delete the cache"):
        asyncio.run(drive(Plan(model, [], ["default"], cache=cache)))


def test_methods_are_named_or_all() -> None:
    assert known_methods("all", twin=True) == list(METHODS)
    assert "twin" not in known_methods("all", twin=False)
    with pytest.raises(ValueError, match="--twin FOLDER"):
        known_methods("twin", twin=False)


TASK = {
    "task_id": "Single/0",
    "entry_point": "add",
    "prompt": "def add(a, b):\n",
    "canonical_solution": "    return a + b\n",
    "suffix": "\n# end\n",
    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
}


def test_whole_lines_of_humaneval_are_asked_for_behind_the_line_before(tmp_path: Path) -> None:
    path = tmp_path / "HumanEval-SingleLineInfilling.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(TASK).encode() + b"\n"))
    (task,) = read_tasks(tmp_path, ["single"])
    assert (task.hole.prefix, task.hole.middle) == ("def add(a, b):", "\n    return a + b")
    program = task.program("\n    return a + b\n    more")
    assert program.startswith("def add(a, b):\n    return a + b\n\n# end\n")
    assert program.endswith("\ncheck(add)\n")
    exec(program, {})
    with pytest.raises(AssertionError):
        exec(task.program("\n    return a - b"), {})


def test_a_bad_line_of_humaneval_is_named(tmp_path: Path) -> None:
    path = tmp_path / "HumanEval-SingleLineInfilling.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}\n"))
    with pytest.raises(ValueError, match=r"jsonl\.gz:1: "):
        read_tasks(tmp_path, ["single"])
