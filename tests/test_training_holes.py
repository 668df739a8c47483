"""Holes of several lines, spans, pairs and quiet places, cut out of programs."""

from __future__ import annotations

import ast
import itertools

import pytest
from tokenizers import Tokenizer

from tests.training_texts import program
from training import cuts, holes, tokenizer


@pytest.fixture(scope="module")
def small_tokenizer() -> Tokenizer:
    return tokenizer.train(program(seed, 12) for seed in range(20))


def file_of(text: str) -> cuts.HeldOutFile:
    return cuts.HeldOutFile("own.py", text.split("\n"), holes.code_lines(text))


def drawn(kind: str, trained: Tokenizer) -> list[holes.Hole]:
    return list(holes.draw_kind(trained, "alpha", [file_of(program(16, 30))], kind, seed=6))


@pytest.mark.parametrize("kind", ["lines", "span"])
def test_a_gap_and_its_surroundings_join_to_the_file(kind: str, small_tokenizer: Tokenizer) -> None:
    text = program(16, 30)
    found = drawn(kind, small_tokenizer)
    assert len(found) > 5
    for hole in found:
        assert hole.prefix + hole.middle + hole.suffix in text
    counts = [hole.middle.count("\n") for hole in found]
    if kind == "lines":
        assert set(counts) <= {1, 2, 3, 4}
        assert all(hole.suffix.startswith("\n") for hole in found)
    else:
        assert 0 in counts
        assert max(counts) > 0
        assert all(4 <= len(hole.middle) < 64 for hole in found)


def test_two_gaps_lie_on_lines_of_their_own_and_within_reach(small_tokenizer: Tokenizer) -> None:
    text = program(16, 30)
    found = drawn("two", small_tokenizer)
    assert len(found) > 5
    for hole in found:
        assert isinstance(hole, holes.TwoHoles)
        parts = (hole.prefix, hole.middle, hole.between, hole.second, hole.suffix)
        assert "".join(parts) in text
        assert "\n" not in hole.middle + hole.second
        assert hole.between.startswith("\n")
        assert len(small_tokenizer.encode(hole.between).ids) <= 64


def test_no_character_is_cut_twice(small_tokenizer: Tokenizer) -> None:
    file = file_of(program(16, 30))
    gaps = sorted(
        gap
        for _, cut in cuts.draw_cuts(small_tokenizer, "alpha", [file], "span", seed=6)
        for gap in cut.gaps
    )
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(gaps))


QUIET = '''"""Module. It does
two things.
And more."""
import math

# Half of it.
half = math.pi / 2

def f(x):
    """One line."""
    y = (x +
         1)
    return y
'''


def test_quiet_places_are_where_nothing_is_missing() -> None:
    places = cuts.quiet_places(QUIET)
    before = {sort: [QUIET[:at] for at in found] for sort, found in places.items()}
    assert [text.rpartition("\n")[2] for text in before["statement"]] == ["         1)"]
    assert [text.rpartition("\n")[2] for text in before["header"]] == ["def f(x)"]
    assert [text.rpartition("\n")[2] for text in before["comment"]] == ["# Half of it."]
    assert [text.rpartition("\n")[2] for text in before["docstring"]] == [
        "And more.",
        "two things.",
        '    """One line.',
    ]
    assert before["end"] == [QUIET]


def test_a_quiet_case_takes_nothing_away(small_tokenizer: Tokenizer) -> None:
    text = program(16, 30)
    found = drawn("quiet", small_tokenizer)
    assert len(found) > 3
    for hole in found:
        assert hole.middle == ""
        assert hole.prefix + hole.suffix in text
        ast.parse(text)


def test_packages_alternate_and_the_same_seed_cuts_the_same(small_tokenizer: Tokenizer) -> None:
    packages = {name: [file_of(program(seed, 30))] for name, seed in (("alpha", 16), ("beta", 17))}
    found = holes.choose_kind(small_tokenizer, packages, "span")
    assert [hole.id.split("-")[0] for hole in found[:4]] == ["alpha", "beta"] * 2
    assert found == holes.choose_kind(small_tokenizer, packages, "span")
