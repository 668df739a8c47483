"""Next edits in Neovim: marked, gone to, made as one step, dismissed; what others find wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, tokenizer, version
from tests.editors.nvim_session import ROWS, Nvim

__all__ = ["editors", "start", "tokenizer", "version"]

RENAMED = "def add(first, b):\n    c = first\n    return first + b\n"
TEXT = RENAMED.replace("first", "a")
FAR = TEXT.replace("    return", "    b += 1\n" * (3 * ROWS) + "    return")
ON = {"nextEdit": True}
NAMES = "let rows = 1\n\nnotes\n\nshow rows\n"
LINTER = """
-- `show NAME` wants a line `let NAME = ...`; it looks a while after each change.
local namespace = vim.api.nvim_create_namespace('names')
local function look(buf)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
  local known, found = {}, {}
  for _, line in ipairs(lines) do
    known[line:match('^let (%w+) = ') or ''] = true
  end
  for row, line in ipairs(lines) do
    local name = line:match('^show (%w+)$')
    if name and not known[name] then
      found[#found + 1] = { lnum = row - 1, col = 5, end_col = 5 + #name,
        message = ("unknown name '%s'"):format(name), severity = vim.diagnostic.severity.ERROR,
        source = 'names' }
    end
  end
  vim.diagnostic.set(namespace, buf, found)
end
vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI' }, { callback = function(event)
  vim.defer_fn(function() look(event.buf) end, vim.g.linter_ms)
end })
"""
UNKNOWN = {"lnum": 2, "col": 0, "end_col": 5, "message": "unknown name 'notes'", "severity": 1}
SOON_MS, LATE_MS = 0, 800
"""Before the next edit is asked for, and after."""


def started(start: Start, text: str = TEXT, answer: str = "", **options: Any) -> Nvim:
    nvim = start(answer, text=text, settings=ON, **options)
    nvim.lua(
        "local client = require('dg.client').of(0) local request, notify = client.request, "
        "client.notify vim.g.asked, vim.g.drawn, vim.g.taken = {}, 0, 0 "
        "client.request = function(self, method, params, ...) "
        "if method == 'textDocument/copilotInlineEdit' then local a = vim.g.asked "
        "table.insert(a, params.context) vim.g.asked = a "
        "elseif params and params.command == 'dg.nextEditAccepted' then "
        "vim.g.taken = vim.g.taken + 1 end return request(self, method, params, ...) end "
        "client.notify = function(self, method, ...) "
        "if method == 'textDocument/didShowInlineEdit' then vim.g.drawn = vim.g.drawn + 1 end "
        "return notify(self, method, ...) end"
    )
    return nvim


def shown(nvim: Nvim) -> bool:
    return bool(nvim.lua("return require('dg.next_edit').visible()"))


def rename(nvim: Nvim) -> None:
    """Give the parameter another name, and leave insert mode."""
    nvim.type("gg0f(lsfirst<Esc>")
    nvim.wait(lambda: shown(nvim), "a next edit is shown")


def test_the_next_place_is_marked_and_nothing_is_written(start: Start) -> None:
    nvim = started(start)
    rename(nvim)
    assert "    c = afirst  dg: <M-n>\n" in nvim.screen()  # the old name, coloured, then the new
    assert nvim.lines() == TEXT.replace("(a", "(first").splitlines()
    assert (nvim.api.vars["drawn"], nvim.api.vars["taken"]) == (1, 0)


def test_the_key_goes_there_and_again_makes_it_and_one_undo_takes_it_back(start: Start) -> None:
    nvim = started(start)
    rename(nvim)
    renamed = nvim.lines()
    nvim.type("<M-n>")
    nvim.wait(lambda: nvim.cursor() == (2, 8), "the cursor is there")
    assert nvim.lines() == renamed
    nvim.type("<M-n>")
    nvim.wait(lambda: nvim.lines()[1] == "    c = first", "it is made")
    assert nvim.api.vars["taken"] == 1
    nvim.wait(lambda: shown(nvim), "the next one is shown at once")
    nvim.type("u")
    nvim.wait(lambda: nvim.lines() == renamed, "one step takes it back")
    nvim.wait(lambda: not shown(nvim), "and what followed from it is gone")


def test_one_after_the_other_every_use_gets_the_name(start: Start) -> None:
    nvim = started(start)
    rename(nvim)
    nvim.type("<M-n><M-n>")
    nvim.wait_for("return afirst + b")
    nvim.type("<M-n><M-n>")
    nvim.wait(lambda: nvim.lines() == RENAMED.splitlines(), "all are made")
    nvim.wait(lambda: not shown(nvim), "nothing is left")


def test_while_one_inserts_the_key_does_the_same(start: Start) -> None:
    nvim = started(start)
    nvim.type("gg0f(lsfirst")
    nvim.wait(lambda: shown(nvim), "a next edit is shown")
    nvim.type("<M-n><M-n>")
    nvim.wait(lambda: nvim.lines()[1] == "    c = first", "it is made")
    assert nvim.mode() == "i"


def test_out_of_sight_it_says_where_it_is(start: Start) -> None:
    nvim = started(start, FAR)
    rename(nvim)
    nvim.type("<M-n><M-n>")
    place = len(FAR.splitlines())
    nvim.wait_for(f"c = first  ↓ dg: next edit in line {place}, <M-n>")
    nvim.type("<M-n>")
    nvim.wait_for("return afirst + b  dg: <M-n>")
    assert nvim.cursor() == (place, 11)


def test_escape_sends_it_away_and_the_keys_are_what_they_were(start: Start) -> None:
    nvim = started(start)
    nvim.lua("vim.keymap.set('n', '<Esc>', function() vim.g.mine = true end, { buffer = 0 })")
    rename(nvim)
    nvim.type("<Esc>")
    nvim.wait(lambda: not shown(nvim), "it is gone")
    assert "first  dg" not in nvim.screen()
    assert nvim.lines() == TEXT.replace("(a", "(first").splitlines()
    nvim.type("<Esc>")
    nvim.wait(lambda: nvim.api.vars.get("mine") is True, "Escape is the user's again")
    assert nvim.lua("return vim.fn.maparg('<M-n>', 'n')") == ""


def test_what_is_typed_elsewhere_leaves_it_and_in_its_line_ends_it(start: Start) -> None:
    nvim = started(start)
    rename(nvim)
    nvim.type("O# above<Esc>")
    nvim.wait(lambda: nvim.lines()[0] == "# above", "a line is put above")
    assert shown(nvim)
    nvim.type("3GAb<Esc>")
    nvim.wait(lambda: not shown(nvim), "its line was changed")


def test_a_name_that_goes_on_is_the_next_edit_as_it_is_then(start: Start) -> None:
    nvim = started(start)
    nvim.type("gg0f(lsfirst")
    nvim.wait(lambda: shown(nvim), "a next edit is shown")
    nvim.type("_one")
    nvim.wait_for("c = afirst_one")


def test_a_paused_buffer_has_none(start: Start) -> None:
    nvim = started(start)
    rename(nvim)
    nvim.api.command("DgPause")
    nvim.wait(lambda: not shown(nvim), "it is gone")
    nvim.api.command("DgPause")
    nvim.type("x")
    nvim.wait(lambda: len(nvim.api.vars["asked"]) > 1, "it is asked for again")


def test_the_command_goes_there_and_says_when_there_is_none(start: Start) -> None:
    nvim = started(start)
    nvim.api.command("DgNextEdit")
    assert "No next edit is proposed in this buffer." in nvim.messages()
    rename(nvim)
    nvim.api.command("DgNextEdit")
    assert nvim.cursor() == (2, 8)
    nvim.api.command("DgNextEdit!")
    assert not shown(nvim)


def test_an_instructed_edit_has_the_screen_and_the_keys(start: Start) -> None:
    nvim = started(start, answer="!wait")
    rename(nvim)
    nvim.type(":1DgEdit say it otherwise<CR>")
    nvim.wait_for("dg: editing…")
    assert not shown(nvim)
    assert "c = afirst" not in nvim.screen()
    nvim.type("<Esc>")
    nvim.wait(lambda: shown(nvim), "it is back when the edit is over")


def test_off_by_default_nothing_is_asked(start: Start) -> None:
    nvim = start("", text=TEXT)
    nvim.type("gg0f(lsfirst<Esc>")
    nvim.wait(lambda: nvim.lines()[0] == "def add(first, b):", "the keys are typed")
    assert not nvim.lua("return package.loaded['dg.next_edit'] ~= nil")


def diagnosed(start: Start, milliseconds: int) -> Nvim:
    return started(start, NAMES, name="names.lua", before=f"vim.g.linter_ms = {milliseconds}")


@pytest.mark.parametrize("milliseconds", [SOON_MS, LATE_MS])
def test_a_name_that_another_source_finds_unknown_is_the_next_edit(
    start: Start, milliseconds: int
) -> None:
    nvim = diagnosed(start, milliseconds)
    nvim.lua(LINTER)
    nvim.type("3GA on it<Esc>")
    nvim.wait(lambda: len(nvim.api.vars["asked"]) == 1, "an edit brings a question")
    assert nvim.api.vars["asked"][0]["diagnostics"] == []
    nvim.type("gg0wcwitem<Esc>")
    nvim.wait(lambda: shown(nvim), "a next edit is shown")
    assert "show rowsitem  dg: <M-n>" in nvim.screen()
    (told,) = nvim.api.vars["asked"][-1]["diagnostics"]
    assert told["message"] == "unknown name 'rows'"
    assert told["range"]["start"] == {"line": 4, "character": 5}
    nvim.type("<M-n><M-n>")
    nvim.wait(lambda: nvim.lines()[4] == "show item", "it is made")


def test_what_is_found_while_the_question_is_open_is_told_in_another(start: Start) -> None:
    nvim = started(start, NAMES, name="names.lua")
    nvim.lua(
        "local found = ... local namespace = vim.api.nvim_create_namespace('others') "
        "local client = require('dg.client').of(0) local request = client.request "
        "client.request = function(self, method, ...) "
        "local sent, id = request(self, method, ...) "
        "if vim.endswith(method, 'InlineEdit') then vim.diagnostic.set(namespace, 0, found) end "
        "return sent, id end",
        [UNKNOWN],
    )
    nvim.type("3GA on it<Esc>")
    nvim.wait(lambda: len(nvim.api.vars["asked"]) == 2, "it is asked again")
    before, now = (told["diagnostics"] for told in nvim.api.vars["asked"])
    assert (len(before), len(now)) == (0, 1)


def test_what_our_own_server_finds_is_not_told_to_it_and_brings_no_question(start: Start) -> None:
    nvim = diagnosed(start, SOON_MS)
    nvim.type("3GA on it<Esc>")
    nvim.wait(lambda: len(nvim.api.vars["asked"]) == 1, "an edit brings a question")
    told = {"lnum": 4, "col": 5, "end_col": 9, "message": "undefined name 'rows'", "severity": 1}
    names = "local ours = vim.lsp.diagnostic.get_namespace(require('dg.client').of(0).id) "
    nvim.lua(f"{names} vim.diagnostic.set(ours, 0, {{ ... }})", told)
    assert nvim.lua("return #vim.diagnostic.get(0)") == 1
    theirs = "vim.diagnostic.set(vim.api.nvim_create_namespace('others'), 0, { ... })"
    nvim.lua(theirs, UNKNOWN)
    nvim.wait(lambda: len(nvim.api.vars["asked"]) == 2, "what others find brings one")
    (others,) = nvim.api.vars["asked"][1]["diagnostics"]
    assert others["message"] == UNKNOWN["message"]


def test_hints_are_not_told_and_columns_are_those_of_the_protocol(start: Start) -> None:
    nvim = started(start, "let é = 1\nshow é\n", name="names.lua")
    set_them = "vim.diagnostic.set(vim.api.nvim_create_namespace('others'), 0, ...)"
    one = {"lnum": 1, "col": 5, "end_col": 7, "message": "unknown name 'é'", "severity": 2}
    nvim.lua(set_them, [one, one | {"message": "shorter: 'e'", "severity": 4}])
    nvim.type("gg0wcwitem<Esc>")
    nvim.wait(lambda: len(nvim.api.vars["asked"]) == 1, "it is asked for")
    (told,) = nvim.api.vars["asked"][0]["diagnostics"]
    encoding = nvim.lua("return require('dg.client').of(0).offset_encoding")
    assert told["range"]["end"]["character"] == (7 if encoding == "utf-8" else 6)
    assert told["severity"] == 2
