"""The report on a model's quality: regenerated from its figures, byte by byte."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
from dg_lsp.bench.figures import Digest, digest_of
from dg_lsp.bench.outcome import Outcome, Warm

from bench.quality import report
from bench.quality.plots import FRONTIER, SHOW, STEPS, families
from tests.checkpoints import write_checkpoint

ROOT = Path(__file__).resolve().parents[1]


def outcome(kind: str, number: int, warm: Warm | None = None) -> Outcome:
    return Outcome(
        f"{kind}{number}", kind, "x", number % 3 == 0, 0.5, False, -number / 10, 1, 2, 3,
        10.0 * number, right=float(number % 3 == 0), warm=warm,
    )  # fmt: skip


def digest(processes: int = 1) -> Digest:
    kinds = ("line", "rest", "lines", "span", "quiet")
    names = ["default", "twin", "4 widths, 1 step", "4 widths, 2 steps"]
    names += [f"known length, {n} step{'s' * (n > 1)}" for n in (1, 2, 4, 8, 16)]
    results = {name: [outcome(k, n) for k in kinds for n in range(9)] for name in names}
    warm = Warm(True, 7, 90.0, True, True, False)
    results["warm start after 1 character"] = [outcome("line", n, warm) for n in range(4)]
    return digest_of(
        results, bench="quality", model="tiny", twin="other", machine="m", threads=2,
        processes=processes, note="9 of each.",
    )  # fmt: skip


def written(runs: list[Path], out: Path) -> dict[str, bytes]:
    out.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "bench.quality.report", *map(str, runs), "--out", str(out)],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return {path.name: path.read_bytes() for path in out.iterdir()}


def test_the_page_and_plots_come_back_the_same_from_what_is_kept(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    run.write_text(json.dumps({"digest": msgspec.to_builtins(digest())}))
    first = written([run], tmp_path / "out")
    assert set(first) == {"quality.md", "quality.json", FRONTIER, STEPS, SHOW}
    assert written([], tmp_path / "out") == first
    for name in (FRONTIER, STEPS, SHOW):
        assert ET.fromstring(first[name]).tag.endswith("svg")
        assert len(first[name]) < 100_000
        assert b"<dc:date>" not in first[name]
        assert name in first["quality.md"].decode()


def test_the_page_says_what_was_asked_and_what_came_of_it() -> None:
    text = report.report([digest()], [])
    assert "| one line, length unknown | 35 % exact | 33.3% |" in text
    assert "| warm start after 1 character | at most 2 forwards | 3 (cold 7) |" in text
    assert "### Warm starts" in text
    one_line = text.split("### One line")[1].split("###")[0]
    assert "warm start" not in one_line


def test_times_come_from_the_run_that_had_the_machine_to_itself() -> None:
    assert report.timed([digest(8), digest(1)]).processes == 1
    assert report.timed([digest(8)]).processes == 8


def test_only_methods_that_differ_in_one_number_are_joined() -> None:
    assert families(
        ["4 widths, 1 step", "4 widths, 2 steps", "8 widths, 4 steps, by first step", "default"]
    ) == {"4 widths": ["4 widths, 1 step", "4 widths, 2 steps"], "default": ["default"]}


def test_a_file_that_is_no_run_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"run\.json holds no run; write one by --json"):
        report.read_digest(path)


BARE = """
import runpy, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {NAMES}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
runpy.run_module("dg_lsp.cli.main", run_name="__main__")
"""
ABSENT = (
    "hypothesis", "lsprotocol", "matplotlib", "pathspec", "psutil", "pygls", "scipy", "watchfiles",
)  # fmt: skip


def test_the_evaluation_runs_from_the_sources_alone(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model", canvas_length=64, max_position_embeddings=2048)
    hole = {"id": "a", "prefix": "x = ", "middle": "1", "suffix": "\n", "path": "a.py"}
    holes = tmp_path / "holes.jsonl"
    holes.write_text(json.dumps(hole) + "\n")
    ran = subprocess.run(
        [sys.executable, "-c", BARE.replace("{NAMES}", repr(ABSENT)), "bench", "quality",
         "--holes", str(holes), "--model", str(tmp_path / "model"), "--threads", "1",
         "--twin", str(tmp_path / "model"), "--methods", "default;twin", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": "server:engine:kernels", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["methods"]["twin"]["holes"] == 1
    assert msgspec.convert(told["digest"], Digest).twin == "model"
