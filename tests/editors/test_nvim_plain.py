"""Neovim 0.12 without our plugin, configured as docs/clients.md says."""

from __future__ import annotations

from pathlib import Path

from tests.editors.nvim_fixtures import TEXT, editors, scripted, tokenizer
from tests.editors.nvim_session import Nvim
from tests.editors.terminal_fixtures import documented

__all__ = ["editors", "tokenizer"]


def test_ghost_text_comes_and_tab_takes_it(tokenizer: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "dg-lsp").write_text(f"#!/bin/sh\nexec {_quoted(scripted(tokenizer, 'alpha'))}\n")
    (programs / "dg-lsp").chmod(0o755)
    on_path = f"vim.env.PATH = '{programs}:' .. vim.env.PATH\n"
    nvim = Nvim(
        "0.12",
        tmp_path / "home",
        before=on_path + documented("Neovim 0.12 without our plugin", "lua"),
        plugin=False,
    )
    try:
        path = tmp_path / "file.py"
        path.write_text(TEXT)
        nvim.api.command(f"edit {path}")
        nvim.wait(lambda: bool(nvim.lua("return #vim.lsp.get_clients() == 1")), "it is attached")
        nvim.type("jAx")
        nvim.wait_for("return xalpha")
        assert nvim.lines()[1] == "    return x"
        nvim.type("<Tab>")
        nvim.wait(lambda: nvim.lines()[1] == "    return xalpha", "it is written")
    finally:
        nvim.close()


def _quoted(argv: list[str]) -> str:
    return " ".join(f"'{argument}'" for argument in argv)
