"""The GPU engine's benchmark says what failed, and keeps what it has."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from dg_engine.job import MaskRule

from bench.gpu import parity, results
from bench.gpu.report import Report
from bench.gpu.turn import TURN, held

SCRIPT = Path(__file__).resolve().parents[1] / "bench" / "gpu_engine.py"


async def lines(*found: str) -> list[str]:
    return list(found)


async def broken() -> list[str]:
    raise ValueError("two\nlines")


async def stuck() -> list[str]:
    await asyncio.Event().wait()
    return []


@pytest.mark.asyncio
async def test_a_measurement_that_fails_is_one_line_and_the_next_is_made(
    capsys: pytest.CaptureFixture[str],
):
    report = Report()
    await report.take("first", broken())
    await report.take("second", stuck(), patience_s=0.01)
    await report.take("third", lines("a", "b"))
    assert capsys.readouterr().out.splitlines() == [
        "|   first failed: ValueError: two lines",
        "|   second failed: nothing within 0.01 s",
        "| a",
        "| b",
    ]
    assert report.failed


@pytest.mark.asyncio
async def test_a_stage_that_cannot_begin_says_why(capsys: pytest.CaptureFixture[str]):
    async def stage() -> None:
        raise SystemExit("the file is of other weights")

    report = Report()
    await report.whole(stage())
    said = "|   the stage failed: SystemExit: the file is of other weights\n"
    assert capsys.readouterr().out == said
    assert report.failed


def run(tmp_path: Path, *options: str) -> list[str]:
    """What the script writes into its file; vLLM may not be there."""
    out = tmp_path / "out"
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--rehearse", "--out", str(out), *options],
        env={"PATH": "", "DG_GPU_WORK": str(tmp_path / "work")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == out.read_text()
    return ran.stdout.splitlines()


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_each_stage_is_one_sentence(tmp_path: Path):
    told = run(tmp_path, "--stages", "answers-float32", "ours", "--layers", "2")
    reason = (
        'EngineError: vLLM is not installed; install vLLM 0.26 to 0.33, or set "engine" to "torch".'
    )
    assert [line for line in told if "exit code" not in line] == [
        "answers-float32",
        f"  the stage failed: {reason}",
        "ours",
        f"  the stage failed: {reason}",
    ]
    assert sum("exit code 1" in line for line in told) == 2


def test_a_stage_that_takes_too_long_is_stopped(tmp_path: Path):
    told = run(tmp_path, "--stages", "upstream", "--limit", "0.01")
    assert told[:2] == ["upstream", "  stopped at its limit of 0.01 s"]
    assert "exit code -9" in told[-1]


def test_the_page_is_what_its_numbers_make():
    found = json.loads((results.RESULTS / "gpu.json").read_text())
    assert "".join(results.page(found)) == (results.RESULTS / "gpu.md").read_text()


@pytest.mark.timeout(300)  # 17 seconds of a processor, on a busy machine many times as long
def test_both_mask_rules_are_solved_for_a_gpu_and_they_differ(tmp_path: Path):
    answers: dict[MaskRule, list[list[int]]] = {}
    parity.write(tmp_path / "0", 0)
    for rule in MaskRule:
        text = parity.solved_by(tmp_path / "0", rule).read_bytes()
        solved = msgspec.json.decode(text, type=list[parity.Case])
        assert len(solved) == len(parity.jobs())
        answers[rule] = [case.frames[-1].ids[0] for case in solved]
    assert answers[MaskRule.ANCHORED] != answers[MaskRule.SYMMETRIC]


def test_whoever_measures_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(TURN, str(tmp_path / "turn"))
    order: list[str] = []

    def later() -> None:
        with held():
            order.append("later")

    with held():
        thread = threading.Thread(target=later)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "later"]
