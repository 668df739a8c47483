"""Marks are filled in Neovim by `:DgFill` and by the code action, in one undo step."""

from __future__ import annotations

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, tokenizer, version
from tests.editors.nvim_session import Nvim

__all__ = ["editors", "start", "tokenizer", "version"]

TEXT = "def add(a, b):\n    return ___\n\n\nprint(add(___))\n"
OLD = TEXT.splitlines()
BOTH = ("a + b", "1, 2")
FILLED = ["def add(a, b):", "    return a + b", "", "", "print(add(1, 2))"]


def filled(nvim: Nvim, keys: str, lines: list[str]) -> None:
    """Press keys, and wait for these lines."""
    nvim.type(keys)
    nvim.wait(lambda: nvim.lines() == lines, "the marks are filled")


def test_all_marks_are_filled_in_one_undo_step(start: Start) -> None:
    nvim = start(*BOTH, text=TEXT)
    filled(nvim, ":DgFill<CR>", FILLED)
    nvim.type("u")
    nvim.wait(lambda: nvim.lines() == OLD, "all of it is undone at once")


def test_a_range_fills_the_marks_in_it(start: Start) -> None:
    nvim = start("a + b", text=TEXT)
    filled(nvim, ":1,2DgFill<CR>", [*FILLED[:2], *OLD[2:]])


def test_a_visual_selection_gives_the_lines(start: Start) -> None:
    nvim = start("1, 2", text=TEXT)
    filled(nvim, "GV:DgFill<CR>", [*OLD[:-1], FILLED[-1]])


def test_crlf_stays_crlf(start: Start) -> None:
    nvim = start(*BOTH, text=TEXT.replace("\n", "\r\n").encode())
    filled(nvim, ":DgFill<CR>", FILLED)
    nvim.type(":write<CR>")
    nvim.wait_for("written")
    path = nvim.api.current.buffer.name
    written = nvim.lua("local f = assert(io.open(..., 'rb')) return f:read('*a')", path)
    assert written == "\r\n".join([*FILLED, ""])


def test_without_marks_it_is_said(start: Start) -> None:
    nvim = start(*BOTH)
    nvim.type(":DgFill<CR>")
    nvim.wait_for("dg: There is no hole here; write ___ where code is missing.")


def test_what_is_typed_meanwhile_is_kept_and_the_fill_is_refused(start: Start) -> None:
    nvim = start("!wait", text=TEXT)
    nvim.type(":DgFill<CR>")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 1, "the engine works")
    nvim.type("Oimport os<Esc>")
    nvim.wait(lambda: nvim.lines() == ["import os", *OLD], "a line is typed")
    nvim.tell_server("test/release")
    nvim.wait(lambda: "The document changed meanwhile" in nvim.messages(), "it is said")
    assert nvim.lines() == ["import os", *OLD]


def test_discard_stops_it(start: Start) -> None:
    nvim = start("!wait", text=TEXT)
    nvim.type(":DgFill<CR>")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 1, "the engine works")
    nvim.api.command("DgDiscard")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 0, "the engine rests")
    assert nvim.lines() == OLD


def test_an_edit_under_review_is_left_alone(start: Start) -> None:
    nvim = start("return b + a", "1, 2", text=TEXT.replace("return ___", "return a + b"))
    nvim.type(":2DgEdit swap<CR>")
    nvim.wait_for("accept")
    nvim.type(":5DgFill<CR>")
    nvim.wait(lambda: nvim.lines()[4] == "print(add(1, 2))", "the mark is filled")
    nvim.type("<CR>")
    nvim.wait(lambda: nvim.lines()[1] == "    return b + a", "the edit is applied")


@pytest.mark.parametrize(
    ("title", "text", "answer", "written"),
    [
        ("Write the docstring", "def add(a, b):\n    return a + b\n", "Add.", '    """Add."""'),
        ("Complete the block", "def add(a, b):\n    \n", "return a + b", "    return a + b"),
    ],
)
def test_other_code_actions_write_or_say_why_not(
    start: Start, title: str, text: str, answer: str, written: str
) -> None:
    nvim = start("!error", answer, text=text, automatic=False)
    nvim.lua(
        "local title = ... vim.ui.select = function(items, _, done) "
        "for i, item in ipairs(items) do "
        "if item.action.title == title then done(item, i) end end end",
        title,
    )
    keys = "gg" if "docstring" in title else "ggjA"
    nvim.type(f"{keys}<Cmd>lua vim.lsp.buf.code_action()<CR>")
    nvim.wait(lambda: "The script says so." in nvim.messages(), "why not is said")
    nvim.type("<Cmd>lua vim.lsp.buf.code_action()<CR>")
    nvim.wait(lambda: nvim.lines()[1] == written, "it is written")


@pytest.mark.parametrize(("answer", "said"), [("a + b", ""), ("!error", "The script says so.")])
def test_the_code_action_does_the_same(start: Start, answer: str, said: str) -> None:
    nvim = start(answer, text=TEXT)
    nvim.lua(
        "vim.ui.select = function(items, _, done) for i, item in ipairs(items) do "
        "if item.action.title == 'Fill the holes' then done(item, i) end end end"
    )
    nvim.type("jVGk:lua vim.lsp.buf.code_action()<CR>")
    if said:
        nvim.wait(lambda: said in nvim.messages(), "why not is said")
        assert nvim.lines() == OLD
    else:
        nvim.wait(lambda: nvim.lines()[1] == "    return a + b", "the mark is filled")
