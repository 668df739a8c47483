"""Injects every fault of tests/test_daemon_faults.py and writes bench/results/faults.md.

`python -m bench.faults`: the tests are the measurement; a row that fails is not in the table, and
the command ends with pytest's exit code.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "bench/results/faults.md"
VARIABLE = "DG_LSP_FAULTS_REPORT"

_HEAD = """# Faults, and how long they last

Made by `python -m bench.faults`, which runs tests/test_daemon_faults.py: a daemon of its own for
each row. Its engine has no model, so the time to load one is not in it; the rows of "engine" and
of files of 1973 and 2096 have a small one, and an editor's server. A row's time goes from the
injection until a window's request is answered rightly again, or until the status says what to do.
"Nothing" means that no user sees anything. Clocks are set for Python, before it starts
(tests/set_clock). That there is no driver is said by a stand-in for vLLM, and by vLLM itself in
tests/vllm/test_no_gpu.py.

{machine}, one run; {count} faults, {longest:.1f} s the longest.

| fault | what is seen | seconds |
|---|---|---|
"""


def main() -> int:
    """Run the tests, write the table."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "faults.jsonl")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "tests/test_daemon_faults.py"],
            cwd=ROOT,
            env={**os.environ, VARIABLE: str(lines)},
            check=False,
        )
        rows = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    cores = os.cpu_count()
    machine = f"{platform.machine()}, {cores} processors, Python {platform.python_version()}"
    head = _HEAD.format(
        machine=machine, count=len(rows), longest=max(row["seconds"] for row in rows)
    )
    table = "".join(f"| {r['what']} | {r['seen']} | {r['seconds']:.2f} |\n" for r in rows)
    REPORT.write_text(head + table, "utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
