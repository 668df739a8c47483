"""Suggestions in Neovim 0.11 and 0.12: shown, typed through, taken in parts, hidden."""

from __future__ import annotations

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, suggested, tokenizer, version

__all__ = ["editors", "start", "tokenizer", "version"]

BLOCK = "def add(a, b):\n    \n"
BODY = "total = a + b\n    return total"


def test_a_suggestion_is_drawn_and_not_written(start: Start) -> None:
    nvim = suggested(start("a + b"))
    assert "    return a + b\n" in nvim.screen()
    assert nvim.lines()[1] == "    return "


def test_tab_takes_all_of_it_and_the_server_is_told(start: Start) -> None:
    nvim = suggested(start("a + b", "!wait"))
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return a + b", "the suggestion is written")
    assert nvim.cursor() == (2, 16)
    code = (
        "local ask = { command = 'dg.status', arguments = { vim.empty_dict() } }"
        "local client = require('dg.client').of(0)"
        "return client:request_sync('workspace/executeCommand', ask, 9000, 0).result.accepted"
    )
    nvim.wait(lambda: nvim.lua(code) == 1, "the server counts it")


def test_several_lines_are_drawn_below_and_taken_whole(start: Start) -> None:
    nvim = suggested(start(BODY, text=BLOCK))
    assert "    total = a + b\n    return total\n" in nvim.screen()
    nvim.type("<Tab>")
    whole = ["def add(a, b):", "    total = a + b", "    return total"]
    nvim.wait(lambda: nvim.lines() == whole, "both lines are written")
    assert nvim.cursor() == (3, 16)


def test_words_are_taken_one_by_one_and_the_rest_stays_shown(start: Start) -> None:
    nvim = suggested(start("alpha + beta", "!wait"))
    nvim.count_bare_frames()
    for written in ("alpha", "alpha +"):
        nvim.type("<M-Right>")
        nvim.wait(lambda text=written: nvim.lines()[1] == f"    return {text}", written)
        assert "    return alpha + beta\n" in nvim.screen()
    frames, bare = nvim.frames()
    assert frames > 0
    assert bare == 0
    nvim.type("<M-Right>")
    nvim.wait(lambda: nvim.lines()[1] == "    return alpha + beta", "the last word")
    assert not nvim.visible()


def test_lines_are_taken_one_by_one(start: Start) -> None:
    nvim = suggested(start(BODY, "!wait", text=BLOCK))
    nvim.type("<M-C-Right>")
    nvim.wait(lambda: nvim.lines()[1:] == ["    total = a + b"], "the first line is written")
    assert "    total = a + b\n    return total\n" in nvim.screen()
    nvim.type("<M-C-Right>")
    nvim.wait(lambda: nvim.lines()[2:] == ["    return total"], "the second line is written")


def test_the_middle_of_a_line_keeps_its_end(start: Start) -> None:
    nvim = suggested(start("alpha", text="call(, beta)\n"), "0f,i")
    assert "call(alpha, beta)" in nvim.screen()
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines() == ["call(alpha, beta)"], "it is written")


def test_next_and_previous_turn_in_a_circle(start: Start) -> None:
    # While typing one text is asked for; the others come when they are.
    nvim = suggested(start("first", "first | second | third"))
    for key, shown in (
        ("<M-]>", "second"),
        ("<M-]>", "third"),
        ("<M-]>", "first"),
        ("<M-[>", "third"),
    ):
        nvim.type(key)
        nvim.wait_for(f"return {shown}")
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return third", "the one shown is written")


def test_typing_through_keeps_the_suggestion_in_every_frame(start: Start) -> None:
    nvim = suggested(start("alpha + beta", "!wait"))
    nvim.count_bare_frames()
    for count, key in enumerate("alpha +", start=1):
        nvim.type(key)
        nvim.wait(lambda n=count: nvim.cursor()[1] == 11 + n, "the key is typed")
        assert "    return alpha + beta\n" in nvim.screen()
        assert nvim.visible()
    frames, bare = nvim.frames()
    assert frames >= len("alpha +")
    assert bare == 0
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return alpha + beta", "no letter twice")
    assert nvim.ask_server("test/engine")["jobs"] <= 2  # not one for each letter


AUTOPAIRS = "".join(
    f"vim.keymap.set('i', [[{a}]], [[{a}{b}<C-g>U<Left>]]) " for a, b in ("()", "[]", "''")
)
"""What plugins that close brackets do."""


@pytest.mark.parametrize("ghost", ["auto", "own"])
def test_a_closed_bracket_leaves_what_stands_in_it_in_every_frame(start: Start, ghost: str) -> None:
    nvim = suggested(start("max(['a)', b], c) + d", "!wait", before=AUTOPAIRS, ghost=ghost))
    asked = nvim.ask_server("test/engine")["jobs"]
    nvim.count_bare_frames()
    for typed, line, shown in (
        ("max", "max", "max(['a)', b], c) + d"),
        ("(", "max()", "max(['a)', b], c)"),
        ("[", "max([])", "max(['a)', b])"),
        ("'", "max([''])", "max(['a)'])"),
    ):
        nvim.type(typed)
        nvim.wait(lambda text=line: nvim.lines()[1] == f"    return {text}", "the key is typed")
        nvim.wait_for(f"return {shown}\n")
    frames, bare = nvim.frames()
    assert frames > 0
    assert bare == 0
    assert nvim.ask_server("test/engine")["jobs"] == asked
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return max(['a)'])", "it is written")


def test_a_closed_bracket_that_it_does_not_say_is_asked_about_once(start: Start) -> None:
    nvim = suggested(start("alpha", "beta", before=AUTOPAIRS))
    asked = nvim.ask_server("test/engine")["jobs"]
    nvim.type("(")
    nvim.wait_for("return (beta)")
    assert nvim.lines()[1] == "    return ()"
    assert nvim.ask_server("test/engine")["jobs"] == asked + 1


def test_typing_something_else_hides_it_at_once(start: Start) -> None:
    nvim = suggested(start("alpha", "!wait"))
    nvim.type("x")
    nvim.wait(lambda: nvim.lines()[1] == "    return x", "the key is typed")
    assert "alpha" not in nvim.screen()
    assert not nvim.visible()


@pytest.mark.parametrize("key", ["<Esc>", "<C-c>", "<C-]>", "<Left>"])
def test_keys_that_end_it_leave_nothing_behind(start: Start, key: str) -> None:
    nvim = suggested(start("alpha", "!wait"))
    nvim.type(key)
    nvim.wait_gone("alpha")
    assert nvim.lines()[1] == "    return "


def test_an_edit_elsewhere_hides_it(start: Start) -> None:
    nvim = suggested(start("alpha", "!wait"))
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, { '# new' })")
    nvim.wait_gone("alpha")


def test_a_late_answer_is_dropped_and_its_request_cancelled(start: Start) -> None:
    nvim = start("!wait", "beta")
    nvim.type("jA")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 1, "the engine works")
    nvim.type("x")
    nvim.wait_for("return xbeta")
    nvim.tell_server("test/release")
    told = nvim.ask_server("test/engine")
    assert (told["running"], told["cancelled"]) == (0, 1)
    assert "released" not in nvim.screen()


def test_leaving_insert_mode_cancels_what_was_asked_for(start: Start) -> None:
    nvim = start("!wait")
    nvim.type("jA")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 1, "the engine works")
    nvim.type("<Esc>")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 0, "the engine rests")


def test_a_burst_of_keys_is_one_request(start: Start) -> None:
    nvim = start("alpha", debounce_ms=300)
    nvim.type("jAx = y + z")
    nvim.wait(nvim.visible, "a suggestion is shown")
    assert nvim.ask_server("test/engine")["jobs"] == 1


def test_undo_takes_back_what_was_taken_before_what_was_typed(start: Start) -> None:
    nvim = start("alpha", "!wait")
    nvim.type("jAx")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return xalpha", "it is written")
    nvim.type("<Esc>u")
    nvim.wait(lambda: nvim.lines()[1] == "    return x", "only the suggestion is gone")


def test_without_automatic_nothing_is_asked_until_the_key(start: Start) -> None:
    nvim = start("alpha | beta", automatic=False)
    nvim.type("jAx")
    nvim.wait(lambda: nvim.lines()[1] == "    return x", "the key is typed")
    assert nvim.ask_server("test/engine")["jobs"] == 0
    nvim.type("<M-Bslash>")
    nvim.wait_for("return xalpha")


def test_a_macro_that_runs_asks_nothing(start: Start) -> None:
    nvim = start("alpha")
    nvim.lua("vim.fn.setreg('q', 'jAx\\27')")
    nvim.type("@q")
    nvim.wait(lambda: nvim.lines()[1] == "    return x", "the macro has run")
    assert nvim.ask_server("test/engine")["jobs"] == 0


def test_the_own_ghost_text_can_be_had_on_every_version(start: Start) -> None:
    nvim = suggested(start("alpha", ghost="own"))
    assert "    return alpha\n" in nvim.screen()
    nvim.type("<Tab>")
    nvim.wait(lambda: nvim.lines()[1] == "    return alpha", "it is written")
