"""CI drives the editors where they can be had, and says so where they cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "editors" / "reachable.py"
PARTS = ("nvim", "terminal", "vscode")


def asked(**environ: str) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, SCRIPT],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.returncode, ran.stdout


def test_editors_that_are_kept_need_no_network(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).mkdir()
        (tmp_path / part / "ready").touch()
    assert asked(DG_LSP_EDITORS=str(tmp_path), PATH="") == (0, "")


def test_one_sentence_says_why_there_are_none(tmp_path: Path) -> None:
    for part in PARTS[:-1]:
        (tmp_path / part).mkdir()
        (tmp_path / part / "ready").touch()
    code, said = asked(DG_LSP_EDITORS=str(tmp_path), PATH="")
    assert code == 1
    assert said == "The tests in the editors are left out: this is not Debian as root.\n"
