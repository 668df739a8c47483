"""Emacs with lsp-mode, configured as docs/clients.md says, in a terminal whose screen is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.terminal import Terminal, installed
from tests.editors.terminal_fixtures import TEXT, Desktop, desktop, documented, editors

__all__ = ["desktop", "editors"]

HERE = Path(__file__).parent / "emacs"
END_OF_LINE_2 = "\x1bg" + "g2\r" + "\x05"
SAVE = "\x18\x13"
pytestmark = pytest.mark.timeout(300)


def emacs(desktop: Desktop, *answers: str, text: str = TEXT) -> Terminal:
    """Emacs with the file open and the server attached."""
    desktop.script(*answers)
    desktop.write(text)
    init = desktop.home / "init.el"
    init.write_text(documented("Emacs with lsp-mode", "elisp"))
    loads = ("-l", str(HERE / "package.el"), "-l", str(init))
    found = desktop.run(str(installed() / "emacs"), "-Q", "-nw", *loads, desktop.file.name)
    found.wait_for("initialized successfully")
    return found


def test_ghost_text_is_drawn_and_tab_takes_it(desktop: Desktop) -> None:
    found = emacs(desktop, "alpha + beta")
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
    found = emacs(desktop, "alpha")
    found.type(f"{END_OF_LINE_2}x")
    found.wait_for("return xalpha")
    found.type("\x07")
    found.wait(lambda: "alpha" not in found.screen(), "it is gone")
    found.type(SAVE)
    found.wait(desktop.saved(TEXT.replace("return ", "return x")), "the file is saved")


def test_an_instruction_is_asked_for_and_the_edit_applied(desktop: Desktop) -> None:
    found = emacs(desktop, "return b + a", text=TEXT.replace("return ", "return a + b"))
    found.type(f"{END_OF_LINE_2}\x1bxlsp-execute-code-action\r")
    found.wait_for("Instruction:")
    found.type("swap\r")
    found.wait_for("return b + a")
    found.type(SAVE)
    found.wait(desktop.saved(TEXT.replace("return ", "return b + a")), "the file is saved")
