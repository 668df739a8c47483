"""What an engine's process started ends behind it, whatever way that ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

PARENT = """
import subprocess, sys, time
from dg_engine.process_group import end_group_with_process
end_group_with_process()
code = "import signal, sys, time\\n" + sys.argv[1] + "\\nprint('up', flush=True)\\ntime.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")
@pytest.mark.parametrize("child", ["", STUBBORN], ids=["kind", "stubborn"])
@pytest.mark.parametrize("killed", [True, False])
def test_the_processes_of_an_engine_end_behind_it(child: str, killed: bool):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, child],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    started = psutil.Process(int(parent.stdout.readline()))
    if killed:
        parent.send_signal(signal.SIGKILL)
    else:
        parent.stdin.close()
    parent.wait(30)
    end = time.monotonic() + 60
    with contextlib.suppress(psutil.NoSuchProcess):
        while started.is_running() and started.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end, "it goes on"
            time.sleep(0.05)
