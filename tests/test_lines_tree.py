"""A table of lines is a list of lines, however small the pieces it is kept in."""

from __future__ import annotations

import random
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from dg_lsp import lines as module
from dg_lsp.lines import Lines
from dg_lsp.shown.changes import change_between


@pytest.fixture(autouse=True, params=[(2, 2), (4, 8), (8, 4), (128, 32)], ids=str)
def sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    chunk, run = request.param
    with patch.object(module, "CHUNK_LINES", chunk), patch.object(module, "RUN_CHUNKS", run):
        yield


@pytest.mark.parametrize("seed", range(20))
def test_every_edit_makes_what_it_makes_of_a_list(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.choice([1, 20, 300, 300])
    plain = [f"{n}\n" for n in range(count)]
    table = Lines(tuple(plain[i : i + 7]) for i in range(0, count, 7))
    for number in range(60):
        first = rng.randrange(len(plain))
        last = min(first + rng.choice([0, 1, 1, 9, 90]), len(plain))
        new = [f"new {number} {n}\n" for n in range(rng.choice([0, 1, 2, 9, 90]))]
        if last - first == len(plain):
            new.append("at least one\n")
        old, before = table, list(plain)
        plain[first:last] = new
        table = table.replaced(first, last, new)
        assert table.count == len(plain)
        assert [table[n] for n in range(table.count)] == plain
        assert table.between(0, table.count) == plain == [*"".join(plain).splitlines(keepends=True)]
        assert table.between(first - 3, first + 5) == plain[max(first - 3, 0) : first + 5]
        assert old.between(0, old.count) == before, "the one before stays as it was"
        start, mine, theirs = old.differing(table)
        assert plain == [*before[:start], *theirs, *before[start + len(mine) :]]
        assert table == Lines.of("".join(plain) + "x").replaced(len(plain), len(plain) + 1, [])
        changed = change_between(old, table)
        assert (changed is None) == (before == plain)


def test_no_line_is_outside() -> None:
    table = Lines.of("a\nb\nc")
    for outside in (-1, 3, 10**9):
        with pytest.raises(IndexError):
            table[outside]
