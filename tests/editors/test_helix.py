"""Helix, configured as docs/clients.md says, in a terminal whose screen is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.installs import installed
from tests.editors.terminal import Terminal
from tests.editors.terminal_fixtures import TEXT, Desktop, desktop, documented, editors

__all__ = ["desktop", "editors"]

MARKED = TEXT.replace("return ", "return ___")
pytestmark = pytest.mark.timeout(200)


def helix(desktop: Desktop, *answers: str, text: str = TEXT) -> tuple[Terminal, Path]:
    """Helix with the file open, and its log."""
    desktop.script(*answers)
    desktop.write(text)
    configuration = desktop.home / ".config" / "helix"
    configuration.mkdir(parents=True)
    (configuration / "languages.toml").write_text(documented("Helix", "toml"))
    log = desktop.home / "helix.log"
    program = str(installed("terminal") / "hx")
    found = desktop.run(program, "-vv", "--log", str(log), desktop.file.name)
    found.wait_for("def add")
    found.wait(lambda: "textDocument/didOpen" in log.read_text(), "the server is attached")
    return found, log


def complaints(log: Path) -> list[str]:
    """What Helix finds wrong."""
    return [line for line in log.read_text().splitlines() if "[ERROR]" in line or "[WARN]" in line]


def test_it_attaches_without_errors_and_types(desktop: Desktop) -> None:
    found, log = helix(desktop, "alpha")
    found.type("2Gglax\x1b")
    found.wait_for("return x")
    found.wait(lambda: "textDocument/didChange" in log.read_text(), "the server is told")
    found.type(":write\r")
    found.wait(desktop.saved(TEXT.replace("return ", "return x")), "the file is saved")
    assert complaints(log) == []


def test_holes_are_filled_by_the_code_action(desktop: Desktop) -> None:
    found, log = helix(desktop, "a + b", text=MARKED)
    found.type("2G a")
    found.wait_for("Fill the holes")
    assert "Edit with instruction" in found.screen()
    found.type("\r")  # quick fixes come first
    found.wait_for("return a + b")
    found.type(":write\r")
    found.wait(desktop.saved(TEXT.replace("return ", "return a + b")), "the file is saved")
    assert complaints(log) == []
