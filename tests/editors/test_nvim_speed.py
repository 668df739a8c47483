"""What editor and protocol cost: from a key to ghost text, with an engine that costs nothing."""

from __future__ import annotations

import pytest

from tests.editors.nvim_fixtures import Start, editors, start, tokenizer, version
from tests.editors.speed import milliseconds, neovim_free, report

__all__ = ["editors", "start", "tokenizer", "version"]

KEYS = 40
DEBOUNCE_MS = 50
FASTEST_MS, SLOWEST_MS = DEBOUNCE_MS, 1000


@pytest.mark.parametrize("ghost", ["auto", "own"])
def test_from_keystroke_to_ghost_text(start: Start, version: str, ghost: str) -> None:
    """Prints the times; the median is no less than the debounce and no more than a second."""
    times = neovim_free(start("alpha", ghost=ghost, debounce_ms=DEBOUNCE_MS), KEYS)
    print(f"\n{report(f'Neovim {version}, ghost = {ghost}', times)}")
    median, _ = milliseconds(times.totals)
    assert FASTEST_MS <= median <= SLOWEST_MS
