"""Emacs with lsp-mode and with eglot, configured as docs/clients.md says; its screen is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.installs import installed
from tests.editors.terminal import Terminal
from tests.editors.terminal_fixtures import TEXT, Desktop, desktop, documented, editors

__all__ = ["desktop", "editors"]

HERE = Path(__file__).parent / "emacs"
END_OF_LINE_2 = "\x1bg" + "g2\r" + "\x05"
SAVE = "\x18\x13"
pytestmark = pytest.mark.timeout(300)


def emacs(desktop: Desktop, heading: str, *answers: str, text: str = TEXT) -> Terminal:
    """Emacs with the file open, configured by what stands below a heading."""
    desktop.script(*answers)
    desktop.write(text)
    init = desktop.home / "init.el"
    init.write_text(documented(heading, "elisp"))
    loads = ("-l", str(HERE / "package.el"), "-l", str(init))
    return desktop.run(str(installed("terminal") / "emacs"), "-Q", "-nw", *loads, desktop.file.name)


def lsp_mode(desktop: Desktop, *answers: str, text: str = TEXT) -> Terminal:
    """Emacs with lsp-mode and the server attached."""
    found = emacs(desktop, "Emacs with lsp-mode", *answers, text=text)
    found.wait_for("initialized successfully")
    return found


def test_ghost_text_is_drawn_and_tab_takes_it(desktop: Desktop) -> None:
    found = lsp_mode(desktop, "alpha + beta")
    found.type(f"{END_OF_LINE_2}x")
    found.wait_for("return xalpha + beta")
    assert desktop.file.read_text() == TEXT
    found.type("\t")
    found.wait(lambda: "Completion 1/1" not in found.screen(), "it is taken")
    found.type(SAVE)
    written = TEXT.replace("return ", "return xalpha + beta")
    found.wait(desktop.saved(written), "the file is saved")
    assert "Unknown notification" not in found.screen()


def test_control_g_sends_it_away_and_leaves_what_was_typed(desktop: Desktop) -> None:
    found = lsp_mode(desktop, "alpha")
    found.type(f"{END_OF_LINE_2}x")
    found.wait_for("return xalpha")
    found.type("\x07")
    found.wait(lambda: "alpha" not in found.screen(), "it is gone")
    found.type(SAVE)
    found.wait(desktop.saved(TEXT.replace("return ", "return x")), "the file is saved")


def test_an_instruction_is_asked_for_and_the_edit_applied(desktop: Desktop) -> None:
    found = lsp_mode(desktop, "return b + a", text=TEXT.replace("return ", "return a + b"))
    found.type(f"{END_OF_LINE_2}\x1bxlsp-execute-code-action\r")
    found.wait_for("Instruction:")
    found.type("swap\r")
    found.wait_for("return b + a")
    found.type(SAVE)
    found.wait(desktop.saved(TEXT.replace("return ", "return b + a")), "the file is saved")


def test_eglot_attaches_and_fills_holes_by_the_code_action(desktop: Desktop) -> None:
    marked = TEXT.replace("return ", "return ___")
    found = emacs(desktop, "Emacs with eglot", "a + b", text=marked)
    found.wait_for("def add")
    found.type("\x1bxeglot\r")
    found.wait_for("[eglot:project")
    found.type(f"{END_OF_LINE_2}\x1bxeglot-code-actions\r")
    found.wait_for("Pick an action")
    found.type("Fill the holes\r")
    found.wait_for("return a + b")
    found.type(SAVE)
    found.wait(desktop.saved(TEXT.replace("return ", "return a + b")), "the file is saved")
