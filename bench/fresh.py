"""From nothing to the first ghost text, in VS Code and in Neovim: `python -m bench.fresh`.

Does what clients/vscode/README.md and clients/nvim/README.md tell a newcomer, in an empty home, in
the real editors (`make test-editors` installs them), and times each step. The commands for Neovim
are those of its page, word for word.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from dg_lsp.bench.machine import machine

from tests.editors.installs import installed
from tests.editors.nvim_session import VERSIONS
from tests.editors.speed import LINES
from tests.editors.terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
VSCODE = ROOT / "tests" / "editors" / "vscode"
PAGE = ROOT / "clients" / "nvim" / "README.md"
PLACEHOLDER = "/path/to/dg-lsp"
FILE = "figures.py"
TEXT = "\n".join(LINES).rstrip()
TYPED = " len(values)"
SECONDS_PER_KEY = 3.0
"""Within these the suggestion for a key comes, or the next key is typed."""


class Step(NamedTuple):
    """What a user does, and how long it takes."""

    does: str
    commands: int
    clicks: int
    keys: int
    seconds: float


def neovim_commands() -> list[str]:
    """The lines of shell below "Install" of the plugin's page: the server's and the package's."""
    section = PAGE.read_text("utf-8").split("\n## Install\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def neovim(home: Path) -> Iterator[Step]:
    """A checkout, `make demo`, the plugin as a native package, a file."""
    clone = home / "dg-lsp"
    version = VERSIONS[-1]
    # Where packages come from is what pip is told in the home of who measures.
    if (told := Path.home() / ".config" / "pip").is_dir():
        shutil.copytree(told, home / ".config" / "pip")
    nvim = installed("nvim") / version
    programs = home / "programs"
    programs.mkdir()
    (programs / "nvim").symlink_to(nvim / "nvim")
    environment = {
        **plain_environment(home),
        "VIMRUNTIME": str(nvim / "runtime"),
        "PATH": f"{programs}:{Path(sys.base_prefix) / 'bin'}:{os.defpath}",
    }
    clone_it = f"git clone --quiet '{ROOT}' '{clone}'"
    yield shell("`git clone …`", [clone_it], home, environment)
    yield shell("`make demo`", ["make demo"], clone, environment)
    lines = [line.replace(PLACEHOLDER, str(clone)) for line in neovim_commands()]
    yield shell("what the page tells: `PATH`, the package, `init.lua`", lines, home, environment)

    (home / FILE).write_text(f"{TEXT}\n")
    path = f"{clone / '.venv' / 'bin'}:{environment['PATH']}"
    began = time.monotonic()
    terminal = Terminal(
        [str(programs / "nvim"), FILE], home, {**environment, "PATH": path, "LANG": "C.UTF-8"}
    )
    try:
        terminal.wait_for("def mean")
        terminal.type("GA")
        keys = 0
        while not is_shown(terminal, TYPED[:keys]):
            if keys == len(TYPED):
                raise SystemExit(f"No ghost text came.\n{terminal.screen()}")
            keys += 1
            terminal.type(TYPED[keys - 1])
            wanted = TYPED[:keys]
            terminal.reaches(lambda wanted=wanted: is_shown(terminal, wanted), SECONDS_PER_KEY)
        seconds = time.monotonic() - began
        does = "`nvim figures.py`, type; the model is loaded, the first ghost text stands there"
        yield Step(does, 1, 0, 2 + keys, seconds)
    finally:
        terminal.close()
        stop = [str(clone / ".venv" / "bin" / "dg-lsp"), "serve", "--stop"]
        subprocess.run(stop, env=environment, check=False, capture_output=True)


def is_shown(terminal: Terminal, typed: str) -> bool:
    """Whether more stands on the last line than was typed."""
    last = TEXT.splitlines()[-1] + typed
    lines = terminal.screen().split("\n")
    return any(line.startswith(last) and len(line) > len(last.rstrip()) for line in lines)


def shell(does: str, lines: list[str], folder: Path, environment: Mapping[str, str]) -> Step:
    """Run lines in one shell."""
    began = time.monotonic()
    command = ["bash", "-euc", "\n".join(lines)]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=sys.stderr)
    return Step(does, len(lines), 0, 0, time.monotonic() - began)


def plain_environment(home: Path) -> dict[str, str]:
    """That of somebody who has just logged in."""
    run = home / "run"
    run.mkdir(mode=0o700)
    kept = {name: value for name, value in os.environ.items() if "CERT" in name}
    return {**kept, "HOME": str(home), "XDG_RUNTIME_DIR": str(run), "TERM": "xterm-256color"}


def vscode(home: Path) -> Iterator[Step]:
    """A packaged extension and a wheel, which the extension installs."""
    subprocess.run([str(ROOT / "scripts" / "wheel.sh"), str(home)], check=True)
    (wheel,) = home.glob("*.whl")
    python = Path(sys.base_prefix) / "bin" / "python3"
    torch = f"torch=={metadata.version('torch').split('+')[0]}"
    file = home / "file.json"
    file.write_text(json.dumps({"text": TEXT, "typed": TYPED}))
    script = ["--run", str(VSCODE / "fresh.mjs"), str(wheel), str(python), torch, str(file)]
    found = subprocess.run(
        [str(VSCODE / "run.sh"), *script], check=True, stdout=subprocess.PIPE, text=True
    )
    for step in json.loads(found.stdout.splitlines()[-1]):
        yield Step(**step)


def table(steps: list[Step]) -> str:
    """A row for each step, and their sum."""
    total = Step(
        "**all**",
        *(sum(step[column] for step in steps) for column in (1, 2, 3)),
        sum(step.seconds for step in steps),
    )
    rows = [
        f"| {step.does} | {step.commands or ''} | {step.clicks or ''} | {step.keys or ''} "
        f"| {step.seconds:.1f} |"
        for step in [*steps, total]
    ]
    return "\n".join(
        ["| step | commands | clicks | keys | seconds |", "|---|---|---|---|---|", *rows]
    )


def page(found: Mapping[str, list[Step]], loads: list[float]) -> str:
    """The whole result."""
    tables = "\n\n".join(f"## {editor}\n\n{table(steps)}" for editor, steps in found.items())
    between = f"{min(loads):.1f} to {max(loads):.1f}"
    return f"""# From nothing to the first ghost text

Written by `python -m bench.fresh`; {machine()}. Load average {between};
above {os.cpu_count()} other work shared the machine, and the figures are upper bounds.

The home is empty but for where pip looks for packages; pip has kept nothing. The editor, Python,
git and make are there. The checkout is cloned from this disk; PyTorch is the locked version's build
for processors, which lies on it too: a slow line adds what it takes for about 200 MB, and PyPI's
own build for Linux, which brings CUDA, much more (5.5 GB unpacked). VS Code has the wheel and the
`.vsix` of a release at hand (`make dist` makes them).

{tables}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "fresh.md")
    parser.add_argument("--editors", default="vscode,neovim", help="those to measure")
    arguments = parser.parse_args()
    ways = {"vscode": ("VS Code", vscode), "neovim": (f"Neovim {VERSIONS[-1]}", neovim)}
    found: dict[str, list[Step]] = {}
    loads = [os.getloadavg()[0]]
    for name in arguments.editors.split(","):
        editor, way = ways[name]
        with tempfile.TemporaryDirectory() as home:
            found[editor] = list(way(Path(home)))
        loads.append(os.getloadavg()[0])
        print(f"{editor}\n{table(found[editor])}")
    arguments.out.write_text(page(found, loads))


if __name__ == "__main__":
    main()
