"""Write requirements/{dev,runtime,torch}.txt; see requirements/README.md.

Run by `make lock`; with --upgrade every version moves to the newest that pyproject.toml allows.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = Path("requirements/pins.in")
DEV = Path("requirements/dev.txt")
RUNTIME = Path("requirements/runtime.txt")
TORCH = Path("requirements/torch.txt")
HEADER = "# Written by `make lock`; requirements/README.md says how. Do not edit.\n"
HASH = re.compile(r"sha256:[0-9a-f]{64}")
FLAGS = [
    "--quiet",
    "--generate-hashes",
    "--strip-extras",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
]


def compile_lock(source: Path, output: Path, *flags: str) -> str:
    """Run pip-compile and return what it wrote."""
    command = [sys.executable, "-m", "piptools", "compile", *FLAGS, *flags]
    subprocess.run([*command, "-o", str(output), str(source)], cwd=ROOT, check=True)
    return (ROOT / output).read_text()


def without_warning(lock: str) -> str:
    """The lock without pip-compile's closing remark that torch is missing: that is the plan."""
    return lock.split("\n# WARNING: The following packages were not pinned")[0].rstrip() + "\n"


def lock_project(output: Path, *flags: str) -> None:
    """Lock pyproject.toml's dependencies but torch."""
    lock = compile_lock(Path("pyproject.toml"), output, "--unsafe-package=torch", *flags)
    lock = lock.removeprefix(HEADER)
    (ROOT / output).write_text(HEADER + without_warning(lock))


def torch_hashes(requirement: str) -> set[str]:
    """Hashes of all files that pip would choose from for one requirement on torch."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "torch.in"), Path(folder, "torch.txt")
        source.write_text(f"{requirement}\n")
        lock = compile_lock(source, output, "--no-annotate", "--allow-unsafe")
    block = re.search(r"^torch=.*(?:\n +--hash.*)+", lock, re.MULTILINE)
    if block is None:
        raise SystemExit(f"pip-compile found no files for {requirement}.")
    return set(HASH.findall(block[0]))


def lock_torch() -> None:
    """Collect the hashes of the public releases and of a CPU build that lies on this machine.

    `==` also takes local versions such as +cpu, `===` only the release itself; hashes known
    from elsewhere are kept as long as the version stays.
    """
    pin = re.search(r"^torch==(\S+)$", (ROOT / PINS).read_text(), re.MULTILINE)
    if pin is None:
        raise SystemExit(f"{PINS} has no line torch==VERSION; add one.")
    version = pin[1]
    hashes = torch_hashes(f"torch=={version}") | torch_hashes(f"torch==={version}")
    old = (ROOT / TORCH).read_text() if (ROOT / TORCH).exists() else ""
    if f"torch=={version} " in old:
        hashes |= set(HASH.findall(old))
    lines = [f"torch=={version}", *(f"    --hash={digest}" for digest in sorted(hashes))]
    (ROOT / TORCH).write_text(HEADER + " \\\n".join(lines) + "\n")


def main() -> None:
    """Write all three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true")
    upgrade = ["--upgrade"] if parser.parse_args().upgrade else []
    lock_project(DEV, "--extra=dev", f"--constraint={PINS}", *upgrade)
    lock_project(RUNTIME, f"--constraint={PINS}", f"--constraint={DEV}", *upgrade)
    lock_torch()


if __name__ == "__main__":
    main()
