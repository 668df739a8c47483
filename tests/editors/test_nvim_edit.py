"""Edits by instruction: previewed, applied in one undo step, or dropped without a trace."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, tokenizer, version
from tests.editors.nvim_session import Nvim

__all__ = ["editors", "start", "tokenizer", "version"]

TEXT = "def add(a, b):\n    total = a + b\n    return total\n\n\nprint(add(1, 2))\n"
OLD = TEXT.splitlines()
NEW = "total = b + a\n    return total"
"""What the scripted model makes of lines 2 and 3, behind the indentation, which is pinned."""
EDITED = [*OLD[:1], "    total = b + a", *OLD[2:]]
HINT = "dg: <CR> accept, <Esc> discard, <M-r> retry"


def reviewed(nvim: Nvim, keys: str = ":2,3DgEdit swap<CR>") -> Nvim:
    """Ask for an edit, and wait for its preview."""
    nvim.type(keys)
    nvim.wait_for(HINT)
    return nvim


def test_the_preview_shows_old_and_new_and_writes_nothing(start: Start) -> None:
    nvim = reviewed(start(NEW, text=TEXT))
    shown = f"    total = a + b\n    total = b + a\n{HINT}\n    return total\n"
    assert shown in nvim.screen()
    assert nvim.lines() == OLD
    assert not nvim.api.current.buffer.options["modified"]


def test_accept_is_one_undo_step(start: Start) -> None:
    nvim = start(NEW, text=TEXT)
    nvim.type("Goz = 1<Esc>")
    nvim.wait(lambda: nvim.lines() == [*OLD, "z = 1"], "a line is typed")
    reviewed(nvim).type("<CR>")
    nvim.wait(lambda: nvim.lines() == [*EDITED, "z = 1"], "the edit is applied")
    assert HINT not in nvim.screen()
    nvim.type("u")
    nvim.wait(lambda: nvim.lines() == [*OLD, "z = 1"], "the edit alone is undone")
    nvim.type("<C-r>")
    nvim.wait(lambda: nvim.lines() == [*EDITED, "z = 1"], "and done again")


def test_several_hunks_are_one_undo_step(start: Start) -> None:
    nvim = start("total = b + a\n    return a", text=TEXT)
    reviewed(nvim).type("<CR>")
    nvim.wait(lambda: nvim.lines()[1:3] == ["    total = b + a", "    return a"], "applied")
    nvim.type("u")
    nvim.wait(lambda: nvim.lines() == OLD, "undone")


@pytest.mark.parametrize("text", [TEXT.encode(), TEXT.replace("\n", "\r\n").encode(), b"a = 1"])
def test_discard_leaves_the_same_bytes(start: Start, tmp_path: Path, text: bytes) -> None:
    lines = "1" if text == b"a = 1" else "2,3"
    keep_end = "vim.o.fixendofline = false"
    nvim = start("b = 2" if lines == "1" else NEW, text=text, before=keep_end)
    before = nvim.lua("return vim.fn.undotree().seq_last")
    reviewed(nvim, f":{lines}DgEdit swap<CR>").type("<Esc>")
    nvim.wait_gone(HINT)
    assert nvim.lua("return vim.fn.undotree().seq_last") == before
    nvim.type(":write!<CR>")
    nvim.wait_for("written")
    saved = hashlib.sha256((tmp_path / "file.py").read_bytes()).hexdigest()
    assert saved == hashlib.sha256(text).hexdigest()


def test_saving_during_the_review_writes_nothing_of_it(start: Start, tmp_path: Path) -> None:
    nvim = reviewed(start(NEW, text=TEXT))
    nvim.type(":write<CR>")
    nvim.wait_for("written")
    assert (tmp_path / "file.py").read_text() == TEXT
    nvim.type("<CR><CR>")
    nvim.wait(lambda: nvim.lines() == EDITED, "the edit is applied")


def test_crlf_stays_crlf(start: Start, tmp_path: Path) -> None:
    nvim = reviewed(start(NEW, text=TEXT.replace("\n", "\r\n").encode()))
    nvim.type("<CR>")
    nvim.wait(lambda: nvim.lines() == EDITED, "the edit is applied")
    nvim.type(":write<CR>")
    wanted = ("\r\n".join(EDITED) + "\r\n").encode()
    nvim.wait(lambda: (tmp_path / "file.py").read_bytes() == wanted, "it is saved")


def test_a_visual_selection_gives_the_lines(start: Start) -> None:
    nvim = reviewed(start(NEW, text=TEXT), "jVj:DgEdit swap<CR>")
    nvim.type("<CR>")
    nvim.wait(lambda: nvim.lines() == EDITED, "the edit is applied")


def test_without_an_instruction_it_is_asked_for(start: Start) -> None:
    nvim = start(NEW, text=TEXT)
    nvim.type(":2,3DgEdit<CR>")
    nvim.wait_for("Edit with instruction:")
    reviewed(nvim, "swap<CR>").type("<CR>")
    nvim.wait(lambda: nvim.lines() == EDITED, "the edit is applied")


def test_retry_asks_again_for_the_same_lines(start: Start) -> None:
    nvim = reviewed(start("total = a + a\n    return total", NEW, text=TEXT))
    assert "    total = a + a" in nvim.screen()
    nvim.type(":DgRetry swap<CR>")
    nvim.wait_for("    total = b + a")
    assert "    total = a + a" not in nvim.screen()
    nvim.type("<CR>")
    nvim.wait(lambda: nvim.lines() == EDITED, "the edit is applied")


def test_lines_added_above_move_the_preview_with_the_text(start: Start) -> None:
    nvim = reviewed(start(NEW, text=TEXT))
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, { '# new' })")
    nvim.type("<CR>")
    nvim.wait(lambda: nvim.lines() == ["# new", *EDITED], "the edit is applied in its place")


def test_a_change_of_the_lines_drops_the_edit(start: Start) -> None:
    nvim = reviewed(start(NEW, text=TEXT))
    nvim.type("jx")
    nvim.wait_gone(HINT)
    assert nvim.lines()[1] == OLD[1][1:] or nvim.lines()[1] == OLD[1][:4] + OLD[1][5:]
    assert "the edit was dropped" in nvim.messages()


def test_a_refusal_is_said_in_one_sentence(start: Start) -> None:
    nvim = start("total = a + b\n    return total", text=TEXT)
    nvim.type(":2,3DgEdit nothing<CR>")
    nvim.wait_for("dg: The model would change nothing here.")
    assert nvim.lines() == OLD


def test_discard_while_the_engine_works_stops_it(start: Start) -> None:
    nvim = start("!wait", text=TEXT)
    nvim.type(":2,3DgEdit swap<CR>")
    nvim.wait_for("dg: editing…")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 1, "the engine works")
    nvim.type("<Esc>")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 0, "the engine rests")
    nvim.wait_gone("dg: editing…")
    assert nvim.lines() == OLD


def test_keys_of_the_buffer_come_back_after_the_review(start: Start) -> None:
    nvim = start(NEW, text=TEXT)
    nvim.lua("vim.keymap.set('n', '<CR>', 'Gozzz<Esc>', { buffer = 0 })")
    reviewed(nvim).type("<Esc>")
    nvim.wait_gone(HINT)
    nvim.type("<CR>")
    nvim.wait(lambda: nvim.lines() == [*OLD, "zzz"], "the buffer's own mapping runs")


def test_the_code_action_leads_to_the_same_review(start: Start) -> None:
    nvim = start(NEW, text=TEXT)
    nvim.lua("vim.ui.select = function(items, _, done) done(items[1], 1) end")
    nvim.type("jVj:lua vim.lsp.buf.code_action()<CR>")
    nvim.wait_for("Edit with instruction:")
    reviewed(nvim, "swap<CR>").type("<CR>")
    nvim.wait(lambda: nvim.lines() == EDITED, "the edit is applied")


def test_the_first_line_can_be_edited(start: Start) -> None:
    nvim = reviewed(start("def add(b, a):", text=TEXT), ":1DgEdit swap<CR>")
    assert f"def add(a, b):\ndef add(b, a):\n{HINT}\n" in nvim.screen()
    nvim.type("<CR>")
    nvim.wait(lambda: nvim.lines() == ["def add(b, a):", *OLD[1:]], "the edit is applied")


def test_drafts_are_shown_as_they_come_and_cannot_be_accepted(start: Start) -> None:
    nvim = start("!wait", text=TEXT)
    nvim.type(":2,3DgEdit swap<CR>")
    nvim.wait_for("dg: editing…, <Esc> discard")
    # The engine waits, so the drafts are ours; the name is that of the server's first edit.
    for step, word in enumerate(("first", "second"), start=1):
        nvim.lua(
            "local step, text = ... require('dg.edit').on_preview({ id = 'edit-1', step = step, "
            "uri = vim.uri_from_bufnr(0), text = text, reason = '' })",
            step,
            f"    total = {word}\n    return total",
        )
        shown = nvim.screen()
        assert f"    total = {word}\ndg: editing…, <Esc> discard\n    return total\n" in shown
    assert "first" not in nvim.screen()
    nvim.api.command("DgAccept")
    assert nvim.lines() == OLD
    nvim.tell_server("test/release")
    nvim.wait_for(HINT)
    assert nvim.lines() == OLD
