"""Programs that nobody has read: what they do stays inside the sandbox, whatever they do."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import psutil
import pytest
from dg_lsp.bench.sandbox import Limits, Sandbox

LIMITS = Limits(cpu_seconds=2, wall_seconds=8.0, memory_bytes=256 << 20, file_bytes=1 << 16)


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return Sandbox(LIMITS)


def passes(sandbox: Sandbox, program: str) -> bool:
    return asyncio.run(sandbox.passes(program))


def left_over() -> list[psutil.Process]:
    """Processes of the sandbox that still run."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if any("sandboxed.py" in part for part in process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def test_a_program_that_reaches_its_end_passes(sandbox: Sandbox) -> None:
    program = (
        "from typing import List\nimport math, re, collections, hashlib, heapq, random, datetime\n"
        "def f(x: List[int]) -> float:\n    return math.sqrt(sum(x))\n"
        "assert f([1, 3]) == 2\n"
        "open('own.txt', 'w').write('x')\nassert open('own.txt').read() == 'x'\n"
    )
    assert passes(sandbox, program)


@pytest.mark.parametrize(
    "program",
    [
        "assert 1 == 2",
        "def f(:",
        "import sys; sys.exit(0)",
        "raise SystemExit",
        "import os; os._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    ],
)
def test_a_program_that_does_not_reach_its_end_fails(sandbox: Sandbox, program: str) -> None:
    assert not passes(sandbox, program)


def test_an_endless_loop_ends_by_its_processor_time(sandbox: Sandbox) -> None:
    began = time.monotonic()
    assert not passes(sandbox, "while True: pass")
    assert time.monotonic() - began < LIMITS.wall_seconds + 5
    assert left_over() == []


def test_a_sleeper_ends_by_the_wall_clock() -> None:
    sleeper = Sandbox(Limits(wall_seconds=1.0))
    began = time.monotonic()
    assert not passes(sleeper, "import time; time.sleep(60)")
    assert time.monotonic() - began < 20
    assert left_over() == []


@pytest.mark.parametrize(
    "start",
    [
        "os.fork()",
        "subprocess.Popen(['sleep', '60'])",
        "os.system('sleep 60 &')",
        "os.posix_spawn('/bin/sleep', ['sleep', '60'], {})",
        "__import__('_posixsubprocess').fork_exec",
        "multiprocessing.Process(target=print).start()",
    ],
)
def test_a_fork_bomb_never_starts(sandbox: Sandbox, start: str) -> None:
    # One that goes on past the refusal would be told from success by its exit alone.
    bomb = f"import os, subprocess\nimport multiprocessing\nwhile True:\n    {start}\n"
    assert not passes(sandbox, bomb)
    assert left_over() == []


def test_a_memory_hog_is_stopped(sandbox: Sandbox) -> None:
    assert passes(sandbox, "x = bytearray(64 << 20)")
    assert not passes(sandbox, "x = bytearray(1 << 30)")
    assert not passes(sandbox, "x = []\nwhile True: x.append(bytearray(1 << 20))")


@pytest.mark.parametrize(
    "write",
    [
        "open({path!r}, 'w').write('x')",
        "import os; os.open({path!r}, os.O_CREAT | os.O_WRONLY)",
        "import pathlib; pathlib.Path({path!r}).write_text('x')",
        "import os; os.mkdir({path!r})",
        "import os; os.symlink('/etc', {path!r})",
        "import shutil; shutil.copy('program.py', {path!r})",
        "import os; os.rename('program.py', {path!r})",
    ],
)
def test_nothing_is_written_elsewhere(sandbox: Sandbox, tmp_path: Path, write: str) -> None:
    tmp_path.chmod(0o777)
    path = tmp_path / "written"
    assert not passes(sandbox, write.format(path=str(path)))
    assert not path.is_symlink()
    assert not path.exists()


@pytest.mark.parametrize(
    "program",
    [
        "open('big', 'wb').write(bytes(1 << 20))",
        "for i in range(100): open(str(i), 'w')",
        "open('/etc/passwd').read()",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import ctypes; ctypes.CDLL(None).system(b'true')",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (99, 99))",
    ],
)
def test_what_lies_outside_is_refused(sandbox: Sandbox, program: str) -> None:
    assert not passes(sandbox, program)


def test_output_is_thrown_away(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert passes(sandbox, "import sys\nprint('seen')\nprint('seen', file=sys.stderr)")
    assert capfd.readouterr() == ("", "")
