"""Files that editors get wrong: CRLF, tabs, wide characters, large ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, tokenizer, version

__all__ = ["editors", "start", "tokenizer", "version"]

BODY = "total = a + b\n    return total"


def test_crlf_stays_crlf_and_nothing_else(start: Start, tmp_path: Path) -> None:
    nvim = start(BODY, "!wait", text=b"def add(a, b):\r\n    \r\nprint()\r\n")
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    assert "    total = a + b\n    return total\nprint()\n" in nvim.screen()
    assert "^M" not in nvim.screen()
    nvim.type("<Tab>")
    nvim.wait(lambda: len(nvim.lines()) == 4, "it is written")
    nvim.type("<Esc>:write<CR>")
    written = b"def add(a, b):\r\n    total = a + b\r\n    return total\r\nprint()\r\n"
    nvim.wait(lambda: (tmp_path / "file.py").read_bytes() == written, "the file is saved")


def test_tabs_are_drawn_as_wide_as_they_are(start: Start) -> None:
    text = "func add(a int) int {\n\t\n}\n"
    nvim = start("if a {\n\t\treturn a\n\t}", text=text, name="add.go")
    nvim.lua("vim.bo.tabstop = 4")
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    assert "    if a {\n        return a\n    }\n" in nvim.screen()
    nvim.type("<Tab>")
    written = ["func add(a int) int {", "\tif a {", "\t\treturn a", "\t}", "}"]
    nvim.wait(lambda: nvim.lines() == written, "it is written")


WIDE = ["😀", "é", "e\u0301", "日本", "👩‍👩‍👧"]
"""Emoji, composed and decomposed accents, double width, and one emoji of five code points."""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_what_stands_before_the_cursor_moves_nothing(start: Start, encoding: str) -> None:
    # The server chooses the first encoding that we offer.
    only = (
        "local make = vim.lsp.protocol.make_client_capabilities\n"
        "vim.lsp.protocol.make_client_capabilities = function()\n"
        f"  local c = make() c.general.positionEncodings = {{ '{encoding}' }} return c\nend"
    )
    text = "".join(f'call("{wide}", , 1)\n' for wide in WIDE)
    nvim = start("alpha + beta", text=text, before=only)
    assert nvim.lua("return require('dg.client').of(0).offset_encoding") == encoding
    for row, wide in enumerate(WIDE):
        nvim.type("0f,lli")
        nvim.wait(nvim.visible, "a suggestion is shown")
        assert ", alpha + beta, 1)" in nvim.screen().split("\n")[row]
        for key, written in (("a", "a"), ("<M-Right>", "alpha"), ("<Tab>", "alpha + beta")):
            nvim.type(key)
            line = f'call("{wide}", {written}, 1)'
            nvim.wait(lambda line=line, row=row: nvim.lines()[row] == line, line)
        nvim.type("<Esc>j")


def test_a_suggestion_with_an_emoji_is_typed_through_and_taken(start: Start) -> None:
    nvim = start("'😀 é'", "!wait")
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.type("'😀")
    nvim.wait(lambda: nvim.lines()[1] == "    return '😀", "the keys are typed")
    assert nvim.visible()
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return '😀 é'", "it is written")


def test_a_file_of_a_megabyte(start: Start) -> None:
    line = "value = compute(first, second, third)  # a line like any other\n"
    text = line * (1_000_000 // len(line)) + "x = \n"
    nvim = start("alpha", "!wait", text=text)
    nvim.type("GA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    assert "x = alpha" in nvim.screen()
    nvim.type_each("al")
    assert "x = alpha" in nvim.screen()
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[-1] == "x = alpha", "it is written")


def test_an_empty_file(start: Start) -> None:
    nvim = start("alpha", text="")
    nvim.type("i")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines() == ["alpha"], "it is written")


def test_buffers_that_are_no_files_are_left_alone(start: Start) -> None:
    nvim = start("alpha")
    nvim.api.command("help")
    assert not nvim.attached()
    nvim.api.command("enew")
    assert not nvim.attached()
    nvim.type("ix")
    nvim.wait(lambda: nvim.lines() == ["x"], "the key is typed")
    assert not nvim.visible()
