"""Neovim with the real server, its engine process and dg-tiny."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.editors.nvim_fixtures import editors
from tests.editors.nvim_session import ROOT, VERSIONS, Nvim
from tests.editors.speed import LINES, PATIENT, TEXT, neovim_model, report

__all__ = ["editors"]

SERVER = str(ROOT / ".venv" / "bin" / "dg-lsp")
LOADING_SECONDS = 200.0
FEWEST = 5
"""So many keys must lead to a suggestion that was not there before, for the times to mean much."""


pytestmark = pytest.mark.timeout(900)  # every wait has its own limit


@pytest.fixture(scope="module", params=VERSIONS)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A version, and a Neovim of it whose model is loaded: once, for loading is slow."""
    folder = tmp_path_factory.mktemp("model")
    nvim = Nvim(request.param, folder / "home", [SERVER, "--stdio"], settings=PATIENT)
    nvim.open(folder / "figures.py", TEXT)
    nvim.wait(lambda: nvim.status()["state"] == "ready", "the model is ready", LOADING_SECONDS)
    yield request.param, nvim
    nvim.close()


@pytest.fixture
def version(running: tuple[str, Nvim]) -> str:
    return running[0]


@pytest.fixture
def nvim(running: tuple[str, Nvim], tmp_path: Path) -> Nvim:
    """The one that runs, in normal mode, with TEXT in a file of its own.

    In the same file the server would not offer again what it saw taken and undone there.
    """
    found = running[1]
    found.type("<Esc>")
    found.lua("vim.cmd('silent! only!') vim.o.hidden = true")
    found.open(tmp_path / "figures.py", "\n".join(LINES) + "\n")
    return found


def test_a_suggestion_of_the_model_is_taken(nvim: Nvim) -> None:
    nvim.type("GA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    before = nvim.lines()[-1]
    shown = nvim.screen().split("\n")[len(nvim.lines()) - 1]
    assert shown.startswith(before.rstrip())
    assert len(shown) > len(before)
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[-1] == shown, "what was shown is written")


def engines() -> list[int]:
    """Those that hold a model for these tests, shared by windows or not."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "environ"])
        if "dg_engine.child" in (process.info["cmdline"] or [])
        and (process.info["environ"] or {}).get("XDG_RUNTIME_DIR") == os.environ["XDG_RUNTIME_DIR"]
    ]


def test_the_engine_is_killed_and_comes_back(nvim: Nvim) -> None:
    assert engines()
    states = "vim.g.states = {} vim.api.nvim_create_autocmd('User', { pattern = 'DgStatus', "
    nvim.lua(
        states + "callback = function() local s = vim.g.states "
        "table.insert(s, require('dg.status').current.state) vim.g.states = s end })"
    )
    for engine in engines():
        os.kill(engine, signal.SIGKILL)
    nvim.wait(lambda: "warning" in nvim.api.vars["states"], "it is said")
    nvim.wait(lambda: nvim.status()["state"] == "ready", "it is ready again", LOADING_SECONDS)
    assert nvim.attached()
    nvim.type("GA")
    nvim.wait(nvim.visible, "a suggestion is shown", LOADING_SECONDS)


def test_explain_shows_the_prompt(nvim: Nvim) -> None:
    nvim.type("GAx<Esc>")  # not saved, so the buffer's text is explained and not the file's
    nvim.wait(lambda: nvim.lines()[-1].endswith("x"), "the key is typed")
    nvim.api.command("DgExplain")
    nvim.wait(lambda: "Prompt," in nvim.screen(), "the split is open", LOADING_SECONDS)


def test_from_keystroke_to_ghost_text(nvim: Nvim, version: str) -> None:
    """Prints the times."""
    times = neovim_model(nvim)
    assert len(times.totals) >= FEWEST
    print(f"\n{report(f'Neovim {version}, dg-tiny', times)}")
