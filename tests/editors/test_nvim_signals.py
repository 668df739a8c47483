"""What Neovim tells the server of a suggestion: that it was drawn, that a part of it was taken."""

from __future__ import annotations

from typing import Any

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, suggested, tokenizer, version
from tests.editors.nvim_session import Nvim

__all__ = ["editors", "start", "tokenizer", "version"]

SHOWN = "textDocument/didShowCompletion"
PARTLY_TAKEN = "textDocument/didPartiallyAcceptCompletion"


def listened_to(nvim: Nvim) -> Nvim:
    """From now on, keep the signals that the server is sent."""
    nvim.lua(
        "local client = require('dg.client').of(0) local notify = client.notify vim.g.signals = {} "
        "client.notify = function(self, method, params) local s = vim.g.signals "
        "if vim.endswith(method, 'Completion') then table.insert(s, { method, params }) end "
        "vim.g.signals = s return notify(self, method, params) end"
    )
    return nvim


def signals(nvim: Nvim, method: str) -> list[dict[str, Any]]:
    """The parameters of those of one kind."""
    return [params for name, params in nvim.api.vars["signals"] if name == method]


@pytest.mark.parametrize("ghost", ["auto", "own"])
def test_the_server_is_told_once_that_a_suggestion_is_drawn(start: Start, ghost: str) -> None:
    nvim = suggested(listened_to(start("alpha + beta", "!wait", ghost=ghost)))
    nvim.wait(lambda: nvim.ask_server("test/shown_to_user")["drawn"], "the server knows")
    nvim.type_each("alp")
    nvim.type("<M-Right>")
    nvim.wait(lambda: nvim.lines()[1] == "    return alpha", "a word is taken")
    (told,) = signals(nvim, SHOWN)
    assert told["item"]["insertText"] == "alpha + beta"
    assert told["item"]["command"]["command"] == "dg.accepted"


def test_what_was_never_drawn_is_not_told_of(start: Start) -> None:
    nvim = listened_to(start("!wait", "beta"))
    nvim.type("jA")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 1, "the engine works")
    nvim.type("x")
    nvim.wait_for("return xbeta")
    nvim.tell_server("test/release")
    nvim.wait(lambda: nvim.ask_server("test/engine")["running"] == 0, "the engine rests")
    assert [told["item"]["insertText"] for told in signals(nvim, SHOWN)] == ["beta"]


def test_another_one_is_told_of_when_it_is_turned_to(start: Start) -> None:
    nvim = suggested(listened_to(start("first", "first | second")))
    nvim.type("<M-]>")
    nvim.wait_for("return second")
    assert [t["item"]["insertText"] for t in signals(nvim, SHOWN)] == ["first", "second"]


def test_a_part_that_is_taken_is_told_with_its_length(start: Start) -> None:
    nvim = suggested(listened_to(start("alpha + '😀' + beta", "!wait")))
    for written in ("alpha", "alpha +", "alpha + '", "alpha + '😀"):
        nvim.type("<M-Right>")
        nvim.wait(lambda text=written: nvim.lines()[1] == f"    return {text}", written)
    told = signals(nvim, PARTLY_TAKEN)
    assert [params["acceptedLength"] for params in told] == [5, 7, 9, 11]  # UTF-16 units
    assert {params["item"]["insertText"] for params in told} == {"alpha + '😀' + beta"}
    nvim.wait(
        lambda: nvim.ask_server("test/shown_to_user")["outcomes"] == [True] * 4, "the server knows"
    )


def test_what_was_typed_of_it_counts_and_so_does_a_line_break(start: Start) -> None:
    text = b"def add(a, b):\r\n    \r\nprint()\r\n"
    body = "total = a + b\n    return total\n    # end"
    nvim = suggested(listened_to(start(body, "!wait", text=text)))
    nvim.type_each("total")
    nvim.type("<M-C-Right>")
    nvim.wait(lambda: nvim.lines()[1] == "    total = a + b", "the first line is taken")
    nvim.type("<M-C-Right>")
    nvim.wait(lambda: nvim.lines()[2] == "    return total", "the second line is taken")
    lengths = [params["acceptedLength"] for params in signals(nvim, PARTLY_TAKEN)]
    assert lengths == [len("total = a + b"), len("total = a + b\r\n    return total")]
