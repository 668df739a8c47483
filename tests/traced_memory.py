"""What code keeps in memory, counted in a process of its own.

Counting hooks into every allocation of a process, its other threads' too, so it does not happen
where other tests run.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

_AROUND = """
import sys, tracemalloc
{prepare}
tracemalloc.start()
before, _ = tracemalloc.get_traced_memory()
{measured}
after, _ = tracemalloc.get_traced_memory()
print(after - before)
"""


def kept_by(measured: str, *arguments: str, prepare: str = "") -> int:
    """Bytes that `measured` leaves behind, after `prepare`; both are code and see `sys.argv`."""
    code = _AROUND.format(prepare=textwrap.dedent(prepare), measured=textwrap.dedent(measured))
    command = [sys.executable, "-c", code, *arguments]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=100).stdout)
