"""From a keystroke to ghost text in each editor, and the server's share: `python -m bench.editors`.

Drives the real editors (`make test-editors` installs them) with dg-tiny, and with a server whose
engine answers at once, so that what the editor takes is seen. The clock runs in the editors: from
the key to the moment at which the suggestion is drawn. The server's share is from the request that
leaves the editor to its answer, with the engine and the pipes between.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dg_engine.daemon.link import quit_daemon
from dg_engine.daemon.place import Place
from dg_lsp.bench.machine import machine

from tests.editors.installs import installed
from tests.editors.nvim_fixtures import TEXT as PLAIN
from tests.editors.nvim_fixtures import scripted
from tests.editors.nvim_session import VERSIONS, Nvim
from tests.editors.speed import (
    EMACS,
    LINES,
    PATIENT,
    TYPED,
    Times,
    emacs_loads,
    emacs_types,
    milliseconds,
    neovim_free,
    neovim_model,
    vscode_times,
)
from tests.editors.terminal_fixtures import Desktop, documented
from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / ".venv" / "bin" / "dg-lsp"
VSCODE = ROOT / "tests" / "editors" / "vscode"
KEYS = 40
LOADING_SECONDS = 200.0
MODEL, FREE = "dg-tiny", "an engine that answers at once"
Row = tuple[str, str, Times]


def neovim(version: str, folder: Path) -> Iterator[Row]:
    """Both, in one version of Neovim."""
    name = f"Neovim {version}"
    server = scripted(write_tokenizer(folder / "tokenizer", FIM_TOKENS), "alpha")
    nvim = Nvim(version, folder / "free", server)
    nvim.open(folder / "plain.py", PLAIN)
    yield name, FREE, neovim_free(nvim, KEYS)
    nvim.close()
    nvim = Nvim(version, folder / "model", [str(SERVER), "--stdio"], settings=PATIENT)
    nvim.open(folder / "figures.py", "\n".join(LINES) + "\n")
    nvim.wait(lambda: nvim.status()["state"] == "ready", "the model is ready", LOADING_SECONDS)
    yield name, MODEL, neovim_model(nvim)
    nvim.close()


def emacs(folder: Path) -> Iterator[Row]:
    """Both, in Emacs with lsp-mode as docs/clients.md configures it."""
    open_block = "\n".join(LINES) + "\n    "
    for engine, text, keys in ((FREE, PLAIN, "x" * KEYS), (MODEL, open_block, TYPED)):
        desktop = Desktop(folder / engine.replace(" ", "-"))
        if engine == FREE:
            desktop.script("alpha")
        else:
            desktop.link(SERVER)
        desktop.write(text)
        times = desktop.home / "times.txt"
        init = desktop.home / "init.el"
        init.write_text(documented("Emacs with lsp-mode", "elisp") + EMACS)
        package = ROOT / "tests" / "editors" / "emacs" / "package.el"
        loads = ("-l", str(package), "-l", str(init))
        program = str(installed("terminal") / "emacs")
        found = desktop.run(program, "-Q", "-nw", *loads, desktop.file.name, DG_TIMES=str(times))
        found.wait_for("initialized successfully")
        found.type("\x1bg" + "g2\r\x05" if engine == FREE else "\x1b>")
        emacs_loads(found, times, "x" if engine == FREE else "return")
        yield "Emacs, lsp-mode", engine, emacs_types(found, times, keys)
        desktop.close()


def vscode() -> Iterator[Row]:
    """With the model."""
    command = [str(VSCODE / "run.sh"), str(VSCODE / "real_model.test.mjs")]
    subprocess.run(command, check=True, stdout=sys.stderr)
    yield "VS Code", MODEL, vscode_times(VSCODE / "shots" / "times.json")


def table(rows: list[Row]) -> str:
    """A row for each editor and engine, in milliseconds."""
    lines = [
        "| editor | engine | suggestions | key to ghost text p50 ms | p90 ms "
        "| server p50 ms | p90 ms | the rest p50 ms | p90 ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for editor, engine, times in rows:
        parts = [milliseconds(part) for part in (times.totals, times.servers, times.rest)]
        figures = " | ".join(f"{median} | {tail}" for median, tail in parts)
        lines.append(f"| {editor} | {engine} | {len(times.totals)} | {figures} |")
    return "\n".join(lines)


def page(rows: list[Row], loads: list[float]) -> str:
    """The whole result."""
    processors = os.cpu_count() or 1
    shared = (
        "**The machine was shared with other work while this was measured**, so the figures are "
        "upper bounds and runs differ."
        if max(loads) > processors
        else "The machine did nothing else."
    )
    between = f"{min(loads):.1f} to {max(loads):.1f}"
    return f"""# From a keystroke to ghost text, in each editor

Written by `python -m bench.editors`; {machine()}. Load average {between}. {shared}

{table(rows)}

A row counts the keys that brought a suggestion which was not there before; keys that were typed
through a suggestion are drawn at once and have no request. The clock runs in the editor, from the
key to the drawing. "Server" is from request to answer: the pipes, the server and the engine. "The
rest" is the editor and its client. Of it our Neovim plugin waits 50 ms for typing to pause
(`debounce_ms`), and lsp-mode 0.5 s (`lsp-idle-delay`, its default). Helix has no ghost text.

The rows with dg-tiny do not compare the editors' servers, which are the same: our Neovim plugin
keeps a suggestion itself while it is typed through, so that only keys count which need the engine.
VS Code (without its own reuse, for this) and Emacs ask at every key, and most answers are what the
server showed or prepared before.
"""


@contextlib.contextmanager
def runtime_folder() -> Iterator[None]:
    """An engine that windows share is none of those that people have, and none stays."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_RUNTIME_DIR"] = name
        yield
        asyncio.run(quit_daemon(Place(Path(name) / "dg-lsp")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "editors.md")
    parser.add_argument("--editors", default="neovim,emacs,vscode", help="those to measure")
    arguments = parser.parse_args()
    rows: list[Row] = []
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as name, runtime_folder():
        for editor in arguments.editors.split(","):
            folder = Path(name) / editor
            folder.mkdir()
            if editor == "neovim":
                for version in VERSIONS:
                    (folder / version).mkdir()
                    rows += neovim(version, folder / version)
            else:
                rows += emacs(folder) if editor == "emacs" else vscode()
            loads.append(os.getloadavg()[0])
    arguments.out.write_text(page(rows, loads))
    print(table(rows))


if __name__ == "__main__":
    main()
