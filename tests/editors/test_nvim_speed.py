"""What editor and protocol cost: from a key to ghost text, with an engine that costs nothing."""

from __future__ import annotations

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, tokenizer, version
from tests.editors.nvim_session import report

__all__ = ["editors", "start", "tokenizer", "version"]

KEYS = 40
DEBOUNCE_MS = 50
FASTEST_MS, SLOWEST_MS = DEBOUNCE_MS, 1000


@pytest.mark.parametrize("ghost", ["auto", "own"])
def test_from_keystroke_to_ghost_text(start: Start, version: str, ghost: str) -> None:
    """Prints the times; the median is no less than the debounce and no more than a second."""
    nvim = start("alpha", ghost=ghost, debounce_ms=DEBOUNCE_MS)
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.record_times()
    for count in range(1, KEYS + 1):
        nvim.type("x")  # never what is suggested
        nvim.wait(lambda n=count: len(nvim.api.vars["times"]) == n, "a suggestion is shown")
    totals, servers = nvim.times()
    print(f"\n{report(f'Neovim {version}, ghost = {ghost}', totals, servers)}")
    assert FASTEST_MS <= sorted(totals)[KEYS // 2] * 1e3 <= SLOWEST_MS
