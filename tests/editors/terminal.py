"""A program in a terminal: keys go in, the screen's text comes out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.editors.installs import installed

COLUMNS, ROWS = 100, 30
SECONDS = 60.0
"""How long something that must happen may take on a busy machine."""
POLL_SECONDS = 0.01


class Terminal:
    """One program and what it has drawn."""

    def __init__(self, argv: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        python = str(installed("terminal") / "python")
        if python not in sys.path:
            sys.path.append(python)
        import pyte

        class Screen(pyte.Screen):
            def report_device_status(self, mode: int, **kind: bool) -> None:
                """Programs also ask as pyte does not know; nobody needs an answer."""

        self._screen = Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(argv[0], argv, {**environment, "TERM": "xterm-256color"})
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        os.kill(self.pid, signal.SIGWINCH)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # it has ended
            while data := os.read(self._terminal, 65536):
                with self._lock:
                    self._stream.feed(data)

    def type(self, keys: str) -> None:
        """Send keys as a terminal does: `\\r` is Enter, `\\x1b` Escape."""
        os.write(self._terminal, keys.encode())

    def screen(self) -> str:
        """What is drawn, without blanks at line ends."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds; what it was, and the screen, if it never does."""
        if not self.reaches(holds, SECONDS):
            raise AssertionError(f"{what}: not within {SECONDS} s\n{self.screen()}")

    def reaches(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether something holds within a time."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def wait_for(self, text: str) -> None:
        """Wait until a text is on the screen."""
        self.wait(lambda: text in self.screen(), f"{text!r} is shown")

    def close(self) -> None:
        """End it, whatever is unsaved."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)
