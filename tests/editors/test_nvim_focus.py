"""Neovim says whether it is looked at, as far as it knows."""

from __future__ import annotations

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, tokenizer, version
from tests.editors.nvim_session import Nvim

__all__ = ["editors", "start", "tokenizer", "version"]


def told(nvim: Nvim) -> list[bool | None]:
    """What the server was told, in its order."""
    return list(nvim.ask_server("test/focus")["told"])


def look(nvim: Nvim, focused: bool) -> None:
    """What a terminal or a window says."""
    nvim.api.request("nvim_ui_set_focus", focused)


def test_a_change_is_told_once(start: Start) -> None:
    nvim = start()
    assert told(nvim) == []  # nothing tells of the focus here
    for focused in (True, True, False, False, True):
        look(nvim, focused)
    nvim.wait(lambda: told(nvim) == [True, False, True], "the changes are told")


def test_a_server_that_starts_later_is_told(start: Start) -> None:
    nvim = start()
    look(nvim, True)
    nvim.wait(lambda: told(nvim) == [True], "it is told")
    nvim.api.command("DgRestart")
    nvim.wait(nvim.attached, "the next server is attached")
    nvim.wait(lambda: told(nvim) == [True], "the next one is told as well")


@pytest.mark.parametrize(("reports", "after"), [(True, [False, True]), (False, [False, None])])
def test_one_in_the_background_is_not_looked_at(
    start: Start, reports: bool, after: list[bool | None]
) -> None:
    nvim = start()
    before = [True] if reports else []
    if reports:
        look(nvim, True)
        nvim.wait(lambda: told(nvim) == before, "it is told")
    nvim.api.command("suspend")
    nvim.wait(lambda: told(nvim)[: len(before) + 1] == [*before, False], "it is told of the stop")
    nvim.type("l")
    nvim.wait(lambda: told(nvim) == [*before, *after], "it is told that it goes on")
