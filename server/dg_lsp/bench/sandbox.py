"""Runs a program that nobody has read: limits, no network, no files but its own, no output.

What holds it, outermost first: a wall clock and a process group that is killed whole; where the
system lets us, namespaces without a network and with processes of their own (`unshare`); another
user when we are root; resource limits; and an audit hook that refuses files, processes and
sockets (dg_lsp.bench.sandboxed). It is made for what a model writes by mistake, not for an enemy
of the interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

_CHILD = Path(__file__).with_name("sandboxed.py")
_NAMESPACES = ("--net", "--pid", "--fork", "--kill-child=KILL")
_WRAPPERS: dict[str, tuple[str, ...]] = {
    "namespaces without a network": _NAMESPACES,
    "user namespaces without a network": ("--user", "--map-root-user", *_NAMESPACES),
    "no namespaces": (),
}
_TRIAL = "import collections, hashlib, heapq, math, re, string, typing\n"


class SandboxError(Exception):
    """No program can be run here; the message is one sentence."""


class Limits(msgspec.Struct, frozen=True):
    """What one program may use."""

    cpu_seconds: int = 5
    wall_seconds: float = 15.0
    memory_bytes: int = 1 << 30
    file_bytes: int = 1 << 20
    open_files: int = 32


class Sandbox:
    """Runs programs one by one, or several at a time."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Choose the strongest walls that a trial passes; raises SandboxError when none does."""
        if os.name != "posix":
            raise SandboxError("Programs are only run on Linux and macOS.")
        self.limits = limits or Limits()
        unshare = shutil.which("unshare")
        for name, options in _WRAPPERS.items():
            if options and unshare is None:
                continue
            self.walls = name
            self._wrapper: Sequence[str] = (unshare, *options) if unshare and options else ()
            if self._trial():
                return
        raise SandboxError("The sandbox cannot start Python here; try another interpreter.")

    def __str__(self) -> str:
        """The walls in words."""
        limits = self.limits
        return (
            f"programs ran in {self.walls}, {limits.cpu_seconds} s of processor time and "
            f"{limits.memory_bytes >> 20} MiB each"
        )

    async def passes(self, program: str) -> bool:
        """Whether a program runs to its end within its limits, without an exception or an exit."""
        with _folder() as folder:
            code = _secret_code()
            (folder / "program.py").write_text(program, encoding="utf-8")
            process = await asyncio.create_subprocess_exec(
                *self._command(folder, code),
                cwd=folder,
                env={},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(self.limits.wall_seconds):
                    await process.wait()
            except TimeoutError:
                return False
            finally:
                _kill(process.pid)
                await process.wait()
            return process.returncode == code

    def _trial(self) -> bool:
        with _folder() as folder:
            code = _secret_code()
            (folder / "program.py").write_text(_TRIAL)
            ran = subprocess.run(
                self._command(folder, code),
                cwd=folder,
                env={},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=60,
                check=False,
            )
            return ran.returncode == code

    def _command(self, folder: Path, code: int) -> list[str]:
        limits = self.limits
        numbers = (limits.cpu_seconds, limits.memory_bytes, limits.file_bytes, limits.open_files)
        python = [sys.executable, "-I", "-S", "-B", str(_CHILD)]
        return [*self._wrapper, *python, str(folder), str(code), *map(str, numbers)]


@contextlib.contextmanager
def _folder():
    """A folder that also another user may work in, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="dg-lsp-program-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def _secret_code() -> int:
    """An exit code that a program cannot know: `sys.exit(0)` is no success."""
    return 64 + secrets.randbelow(60)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
