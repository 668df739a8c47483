"""The plugin around suggestions: keys, status, pause, restart, health, help."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, tokenizer, version
from tests.editors.nvim_session import CLIENT, Nvim

__all__ = ["editors", "start", "tokenizer", "version"]


def line(nvim: Nvim) -> str:
    """What the statusline component says."""
    return str(nvim.lua("return require('dg').statusline()"))


def test_tab_is_a_tab_while_nothing_is_shown(start: Start) -> None:
    nvim = start("!wait")
    nvim.lua("vim.bo.expandtab, vim.bo.softtabstop = false, 0")
    nvim.type("jA<Tab>x")
    nvim.wait(lambda: nvim.lines()[1] == "    return \tx", "a tab, then the next key")


MAPPINGS = {
    "keys": "vim.keymap.set('i', '<Tab>', 'mapped')",
    "function": "vim.keymap.set('i', '<Tab>', function() vim.api.nvim_put({'mapped'}, 'c', "
    "false, true) end)",
    "expression": "vim.keymap.set('i', '<Tab>', function() return 'mapped' end, { expr = true })",
    "vim expression": "vim.cmd([[inoremap <expr> <Tab> 'map' .. 'ped']])",
    "through another": "vim.cmd('inoremap <Plug>(m) mapped') vim.cmd('imap <Tab> <Plug>(m)')",
    "set later in the buffer": "vim.api.nvim_create_autocmd('InsertEnter', { callback = function()"
    " vim.keymap.set('i', '<Tab>', 'mapped', { buffer = 0 }) end })",
}


@pytest.mark.parametrize("kind", MAPPINGS)
def test_what_tab_was_mapped_to_still_runs_while_nothing_is_shown(start: Start, kind: str) -> None:
    nvim = start("!wait", before=MAPPINGS[kind])
    nvim.type("jA<Tab>x")
    nvim.wait(lambda: nvim.lines()[1] == "    return mappedx", "the mapping of before runs")


def test_a_selected_menu_entry_has_the_key(start: Start) -> None:
    nvim = start("alpha", before="vim.o.completeopt = 'menuone,noinsert'")
    nvim.lua("vim.keymap.set('i', '<F5>', function() vim.fn.complete(12, {'aa', 'ab'}) end)")
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.type("<F5>")
    nvim.wait(lambda: bool(nvim.lua("return vim.fn.pumvisible()")), "the menu is open")
    assert nvim.lua("return require('dg.menu').selected()")
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] != "    return ", "the key did something")
    assert "alpha" not in nvim.lines()[1]


@pytest.mark.parametrize(
    "plugin",
    [
        "package.loaded['blink.cmp'] = { is_menu_visible = function() return vim.g.menu end,"
        " get_selected_item = function() return {} end }",
        "package.loaded.cmp = { visible = function() return vim.g.menu end,"
        " get_selected_entry = function() return {} end }",
    ],
)
def test_menus_of_completion_plugins_have_the_key(start: Start, plugin: str) -> None:
    nvim = start("alpha", before=f"vim.g.menu = true {plugin}")
    nvim.lua("vim.bo.expandtab, vim.bo.softtabstop = false, 0")
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return \t", "a tab")
    nvim.lua("vim.g.menu = false")
    nvim.type("<BS>")
    nvim.wait(nvim.visible, "a suggestion is shown again")
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return alpha", "the suggestion")


def test_keys_can_be_changed_and_turned_off(start: Start) -> None:
    nvim = start("alpha", keymaps={"accept": "<C-y>", "accept_word": False})
    of_key = "return vim.fn.maparg(..., 'i', false, true).desc or ''"
    assert not nvim.lua(of_key, "<Tab>").startswith("dg:")
    assert nvim.lua(of_key, "<M-Right>") == ""
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.type("<C-y>")
    nvim.wait(lambda: nvim.lines()[1] == "    return alpha", "it is written")
    nvim.lua("require('dg').setup({ keymaps = false })")
    assert nvim.lua(of_key, "<C-y>") == ""


def test_setup_twice_gives_back_what_was_mapped(start: Start) -> None:
    nvim = start("alpha", before="vim.keymap.set('i', '<Tab>', 'mapped')")
    nvim.lua("require('dg').setup({ keymaps = false })")
    assert nvim.lua("return vim.fn.maparg('<Tab>', 'i')") == "mapped"


def test_wrong_options_are_said_and_the_others_hold(start: Start) -> None:
    nvim = start("alpha", ghost="loud", debounce_ms=10, colour="red")
    said = nvim.messages()
    assert 'The option "ghost" takes "auto", "native" or "own".' in said
    assert 'There is no option "colour"' in said
    assert nvim.lua("return require('dg.config').options.debounce_ms") == 10
    assert nvim.lua("return require('dg.config').options.ghost") == "auto"


def test_the_statusline_follows_the_model(start: Start) -> None:
    nvim = start("!wait", script={"load": "later"})
    nvim.lua("vim.o.statusline = \"%{%v:lua.require'dg'.statusline()%}\" vim.o.laststatus = 2")
    nvim.wait_for("dg: loading")
    nvim.tell_server("test/loaded")
    nvim.wait_for("dg: ready")
    nvim.type("jA")
    nvim.wait_for("dg: busy")
    nvim.type("<Esc>")
    nvim.wait_for("dg: ready")


def test_a_model_that_fails_is_said(start: Start) -> None:
    nvim = start("", script={"load": "The model is not there; fetch it."})
    nvim.wait(lambda: line(nvim) == "dg: failed", "the statusline says so")
    nvim.type(":DgStatus<CR>")
    nvim.wait(lambda: "the model is failed" in nvim.messages(), "and DgStatus says why")
    assert "The model is not there; fetch it." in nvim.messages()


def test_dg_status_tells_what_the_server_does(start: Start) -> None:
    nvim = start("alpha")
    nvim.type(":DgStatus<CR>")
    nvim.wait(lambda: "dg: the model is ready" in nvim.messages(), "the answer is shown")
    assert "1 documents, 0 requests in flight, 0 suggestions taken" in nvim.messages()


def test_dg_status_tells_why_nothing_is_suggested(start: Start) -> None:
    nvim = start("alpha", text="TOKEN=\n", name=".env")
    nvim.type("A1")
    nvim.wait(lambda: "excluded" in nvim.status()["message"], "the server refuses")
    assert line(nvim) == "dg: off"
    nvim.type("<Esc>:DgStatus<CR>")
    nvim.wait(lambda: "excluded by" in nvim.messages(), "it is said why")
    assert nvim.messages().count("excluded by") == 1
    assert nvim.ask_server("test/engine")["jobs"] == 0


def test_dg_status_tells_what_is_wrong_with_the_settings(start: Start) -> None:
    nvim = start("alpha", settings={"threads": "two"})
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.type("<Esc>:DgStatus<CR>")
    nvim.wait(lambda: "The last suggestion took" in nvim.messages(), "the time is told")
    assert 'The setting "threads" takes a whole number' in nvim.messages()


def test_a_paused_buffer_is_quiet_and_others_are_not(start: Start) -> None:
    nvim = start("alpha")
    first = nvim.api.current.buffer.name
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.api.command("DgPause")
    nvim.wait_gone("alpha")
    assert line(nvim) == "dg: paused"
    jobs = nvim.ask_server("test/engine")["jobs"]
    nvim.type("x")
    nvim.wait(lambda: nvim.lines()[1] == "    return x", "the key is typed")
    assert not nvim.visible()
    nvim.type("<Esc>")
    nvim.open(nvim.home / "other.py", "x = \n")
    nvim.type("A")
    nvim.wait(nvim.visible, "a suggestion is shown in another buffer")
    assert nvim.ask_server("test/engine")["jobs"] == jobs + 1
    nvim.type("<Esc>")
    nvim.api.command(f"edit! {first}")
    nvim.api.command("DgPause buffer")
    nvim.type("ggjA")
    nvim.wait(nvim.visible, "a suggestion is shown again")


def test_a_paused_session_is_quiet_until_it_is_resumed(start: Start) -> None:
    nvim = start("alpha")
    nvim.api.command("DgPause session")
    nvim.open(nvim.home / "other.py", "x = \n")
    nvim.type("Ay")
    nvim.wait(lambda: nvim.lines() == ["x = y"], "the key is typed")
    assert line(nvim) == "dg: paused"
    nvim.type("<Esc>")
    assert nvim.ask_server("test/engine")["jobs"] == 0
    nvim.api.command("DgPause session")
    nvim.type("A")
    nvim.wait(nvim.visible, "a suggestion is shown")


def test_a_server_that_was_killed_comes_back(start: Start) -> None:
    nvim = start("alpha")
    pid = int(nvim.lua("return vim.fn.systemlist('pgrep -P ' .. vim.fn.getpid())[1]"))
    id_before = nvim.lua("return require('dg.client').of(0).id")
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    os.kill(pid, signal.SIGKILL)
    nvim.wait_gone("alpha")
    assert nvim.status()["state"] in ("stopped", "loading", "ready")
    nvim.wait(nvim.attached, "a new server is attached")
    assert nvim.lua("return require('dg.client').of(0).id") != id_before
    nvim.type("<Esc>A")
    nvim.wait(nvim.visible, "a suggestion is shown again")


def test_a_server_that_dies_at_each_request_is_left_alone_after_a_few(start: Start) -> None:
    nvim = start("!crash", restarts=1)
    nvim.type("jA")
    nvim.wait(lambda: nvim.status()["state"] == "stopped", "it died")
    nvim.wait(nvim.attached, "it was started again")
    nvim.type("x")
    nvim.wait(lambda: "run :DgRestart" in nvim.status()["message"], "it is left alone")
    assert line(nvim) == "dg: off"
    nvim.type("y")
    nvim.wait(lambda: nvim.lines()[1] == "    return xy", "typing goes on")
    nvim.api.command("DgRestart")
    nvim.wait(nvim.attached, "it is started by hand")


def test_a_server_that_is_not_there_is_said_once(start: Start) -> None:
    nvim = start(text=None, cmd=["no-such-program", "--stdio"])
    for name in ("a.py", "b.py"):
        nvim.api.command(f"edit {nvim.home / name}")
    said = "dg: no-such-program is not on PATH"
    nvim.wait(lambda: said in nvim.messages(), "it is said")
    assert nvim.messages().count(said) == 1
    nvim.type("ix")
    nvim.wait(lambda: nvim.lines() == ["x"], "typing goes on")


def test_checkhealth_names_program_server_and_keys(start: Start) -> None:
    nvim = start("alpha")
    nvim.wait(lambda: nvim.status()["state"] == "ready", "the model is ready")
    nvim.api.command("checkhealth dg")
    report = "\n".join(nvim.lines())
    assert "The server runs, 1 buffers, positions in utf-8." in report
    assert "<Tab>: accept" in report
    assert "State: ready" in report


def test_the_help_has_every_command_and_option(start: Start) -> None:
    nvim = start("alpha")
    text = (CLIENT / "doc" / "dg.txt").read_text()
    commands = nvim.lua("return vim.tbl_keys(vim.api.nvim_get_commands({}))")
    for command in (name for name in commands if name.startswith("Dg")):
        assert f"*:{command}*" in text
    for option in nvim.lua("return vim.tbl_keys(require('dg.config').defaults)"):
        assert f"*dg-option-{option}*" in text
    nvim.api.command(f"helptags {CLIENT / 'doc'}")
    (CLIENT / "doc" / "tags").unlink()


def test_nothing_of_the_plugin_is_loaded_before_it_is_used(start: Start) -> None:
    nvim = start("alpha")
    loaded = nvim.lua("return vim.tbl_keys(package.loaded)")
    assert not {"dg.edit", "dg.preview", "dg.health", "dg.explain"} & set(loaded)


def test_what_the_file_of_the_workspace_says_counts_as_soon_as_it_is_saved(
    start: Start, tmp_path: Path
) -> None:
    nvim = start("alpha")
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    settings = tmp_path / ".dg-lsp.toml"

    def asked(expected: str) -> bool:
        nvim.lua("require('dg').trigger() vim.wait(100)")
        return line(nvim) == expected

    settings.write_text('exclude = ["file.py"]\n')
    nvim.wait(lambda: asked("dg: off"), "the file is excluded")
    assert "`file.py` is excluded" in nvim.status()["message"]
    assert not nvim.visible()
    settings.unlink()
    nvim.wait(lambda: asked("dg: ready") and nvim.visible(), "it is not any more")
