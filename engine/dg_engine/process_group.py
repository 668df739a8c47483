"""An engine that starts processes of its own takes them along when it ends, however it dies."""

from __future__ import annotations

import os
import subprocess

GUARD = """
while kill -s 0 -- "$1"; do sleep 0.5; done
kill -s TERM -- "-$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do kill -s 0 -- "-$1" || exit; sleep 0.5; done
kill -s KILL -- "-$1"
"""
"""Shell script: once the process has gone, end its group, first kindly."""


def end_group_with_process() -> None:
    """Put this process into a group of its own, which a guard ends behind it; POSIX only.

    A process that is killed can end nothing by itself, and vLLM's would hold the GPU's memory.
    """
    if os.name != "posix":
        return
    if os.getpgid(0) != os.getpid():
        os.setpgid(0, 0)
    subprocess.Popen(
        ["/bin/sh", "-c", GUARD, "dg-guard", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
