"""Commands of README.md and docs/, each run as it stands there; `make docs-test`.

In an empty home, with dg-tiny, in a folder that holds the `app.py` of the pages. Every command gets
a terminal, as people's have.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dg_engine.daemon.link import quit_daemon
from dg_engine.daemon.place import Place

from tests.docs.pages import ROOT, commands
from tests.docs.table import RUN, Run

PATIENCE_SECONDS = 100
APP = '''\
"""Orders."""


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def average(prices):
    \n    return result / len(prices)

print(average([1, 2]))
'''
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")


class Shell:
    """A command in bash, on a terminal of its own."""

    def __init__(self, command: str, folder: Path, environment: dict[str, str]) -> None:
        self._main, side = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "-c", command],
            **{"cwd": folder, "env": environment, "stdin": side, "stdout": side, "stderr": side},
            start_new_session=True,
        )
        os.close(side)
        self._raw = b""

    @property
    def shown(self) -> str:
        """What it has written, without colours."""
        return _ESCAPES.sub("", self._raw.decode(errors="replace"))

    def read(self, until: str | None = None) -> bool:
        """Read to the end, or until a pattern is shown; whether that came about in time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if until is not None and re.search(until, self.shown, re.MULTILINE):
                return True
            if not select.select([self._main], [], [], 0.5)[0]:
                continue
            try:
                chunk = os.read(self._main, 1 << 16)
            except OSError:  # Linux says so when the other side is closed
                chunk = b""
            if not chunk:
                return until is None
            self._raw += chunk
        return False

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def close(self) -> None:
        """End what is left of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._main)


@pytest.fixture
def runtime() -> Iterator[Path]:
    """Where this command's shared engine has its socket; it ends with the test."""
    with tempfile.TemporaryDirectory(prefix="dg-docs-") as name:  # sockets' paths are short
        yield Path(name)
        asyncio.run(quit_daemon(Place(Path(name, "dg-lsp"))))


@pytest.fixture
def world(tmp_path: Path, runtime: Path) -> dict[str, str]:
    """The environment of a newcomer: nothing at home, dg-lsp on the PATH."""
    (tmp_path / "app.py").write_text(APP)
    for name in (".venv", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "home").mkdir()
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "USER") if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path / "home"),
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "XDG_RUNTIME_DIR": str(runtime),
    }


@contextlib.contextmanager
def beside(command: str, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a server in the meantime, where one is wanted."""
    if not command:
        yield
        return
    server = Shell(command, folder, environment)
    try:
        assert server.read("serves"), server.shown
        yield
    finally:
        server.close()


def run(command: str, how: Run, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """The exit status and what was shown."""
    shell = Shell(command, folder, environment)
    try:
        if how.until_shown:
            assert shell.read(how.shows), shell.shown
            if how.until_shown == "SIGINT":
                shell.interrupt()
            else:
                end = ["bash", "-c", how.until_shown]
                subprocess.run(end, env=environment, check=True, timeout=PATIENCE_SECONDS)
        assert shell.read(), f"{command} does not end:\n{shell.shown}"
        return shell.process.wait(PATIENCE_SECONDS), shell.shown
    finally:
        shell.close()


TOLD = sorted({command.text for command in commands()} & RUN.keys())


@pytest.mark.parametrize("command", TOLD)
def test_a_command_of_the_pages_does_what_they_say(
    command: str, world: dict[str, str], tmp_path: Path
) -> None:
    how = RUN[command]
    folder = ROOT if how.in_checkout else tmp_path
    with beside(how.beside, folder, world):
        status, shown = run(command, how, folder, world)
    assert (status, bool(re.search(how.shows, shown, re.MULTILINE))) == (how.exits, True), shown
