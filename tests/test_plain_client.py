"""The example client of the documentation does what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server_fixtures import TEXT, tiny
from tests.wire_client import ROOT

__all__ = ["tiny"]

CLIENT = ROOT / "scripts" / "plain_client.py"
MOST_LINES = 45
"""As the pages that name it say: about forty."""


@pytest.mark.parametrize(("answer", "printed"), [("a + b", "a + b\n"), ("", "\n")])
def test_the_plain_client_prints_the_suggestion(
    tiny: Path, tmp_path: Path, answer: str, printed: str
) -> None:
    file = tmp_path / "example.py"
    file.write_text(TEXT)
    server = ["-m", "tests.scripted_server", str(tiny), json.dumps({"answers": [answer]})]
    ran = subprocess.run(
        [sys.executable, str(CLIENT), str(file), "2", "12", sys.executable, *server],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr


def test_the_plain_client_is_short() -> None:
    assert len(CLIENT.read_text().splitlines()) <= MOST_LINES
