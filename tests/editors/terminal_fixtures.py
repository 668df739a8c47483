"""Editors in a terminal for tests, configured as docs/clients.md says, ended after the test."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.editors.installs import installed_or_fail
from tests.editors.terminal import Terminal
from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "clients.md"
TEXT = "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n"


def documented(heading: str, language: str) -> str:
    """The first block of code below a heading of docs/clients.md."""
    section = PAGE.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found, f"{PAGE} has no {language} below {heading}"
    return found[1]


@pytest.fixture(scope="session", autouse=True)
def editors() -> Path:
    return installed_or_fail("terminal")


class Desktop:
    """A home with a project in it, and a `dg-lsp` on the PATH that says what a script tells it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home / "project"
        self.file = self.project / "example.py"
        self._programs = home / "bin"
        self._started: list[Terminal] = []
        for folder in (self.project, self._programs):
            folder.mkdir(parents=True)

    def script(self, *answers: str) -> None:
        """What the model says."""
        tokenizer = write_tokenizer(self.home / "tokenizer", FIM_TOKENS)
        script = json.dumps({"answers": answers, "quiet": True})
        program = self._programs / "dg-lsp"
        program.write_text(
            f"#!/bin/sh\ncd '{ROOT}'\n"
            f"exec '{sys.executable}' -m tests.scripted_server '{tokenizer}' '{script}'\n"
        )
        program.chmod(0o755)

    def link(self, program: Path) -> None:
        """Let `dg-lsp` be this program."""
        (self._programs / "dg-lsp").symlink_to(program)

    def write(self, text: str) -> None:
        """The file that is edited."""
        self.file.write_text(text)

    def run(self, *argv: str, **variables: str) -> Terminal:
        """Start a program in the project, with more variables in its environment."""
        environment = {
            "HOME": str(self.home),
            "PATH": f"{self._programs}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "en_US.UTF-8",
            "XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"],
            **variables,
        }
        terminal = Terminal(list(argv), self.project, environment)
        self._started.append(terminal)
        return terminal

    def saved(self, text: str) -> Callable[[], bool]:
        """Whether the file holds a text."""

        def holds() -> bool:
            try:
                return self.file.read_text() == text
            except FileNotFoundError:
                return False  # it is being replaced

        return holds

    def close(self) -> None:
        """End all that was started."""
        for terminal in self._started:
            terminal.close()


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    found = Desktop(tmp_path / "home")
    yield found
    found.close()
