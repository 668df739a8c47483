"""The prefix cache finds the longest start, stays within its bytes and never lies."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from dg_engine.prefix_cache import PrefixCache
from hypothesis import given
from hypothesis import strategies as st


class Past(NamedTuple):
    """Keys and values that remember which tokens they stand for; ten bytes a token."""

    ids: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return 10 * len(self.ids)

    def crop(self, length: int) -> Past:
        return Past(self.ids[:length])


PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), max_size=12)


@given(PROMPTS, st.lists(st.integers(0, 2), min_size=1, max_size=8))
def test_what_is_reused_is_the_longest_start_and_stands_for_its_tokens(prompts, asked):
    cache = PrefixCache(10**6)
    for prompt in prompts:
        cache.put(prompt, Past(tuple(prompt)))
    found = cache.longest(asked)
    expected = max(
        (
            sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(p, asked, strict=False)))
            for p in prompts
        ),
        default=0,
    )
    assert found.length == min(expected, len(asked) - 1)
    assert (found.past is None) == (found.length == 0)
    if found.past is not None:
        assert found.past.ids == tuple(asked[: found.length])


@given(PROMPTS, st.integers(0, 200))
def test_memory_stays_within_the_bound_and_is_counted_right(prompts, bound):
    cache = PrefixCache(bound)
    for prompt in prompts:
        cache.put(prompt, Past(tuple(prompt)))
        assert cache.nbytes <= bound
    cache.clear()
    assert cache.nbytes == len(cache) == 0


def test_the_least_recently_used_prompt_goes_first():
    cache = PrefixCache(60)
    cache.put([1, 1, 1], Past((1, 1, 1)))
    cache.put([2, 2, 2], Past((2, 2, 2)))
    cache.longest([1, 1, 1, 9])
    cache.put([3, 3, 3], Past((3, 3, 3)))
    assert cache.longest([1, 1, 1, 9]).length == 3
    assert cache.longest([2, 2, 2, 9]).length == 0


def test_a_prompt_replaces_its_own_starts():
    cache = PrefixCache(10**6)
    for length in range(1, 6):
        cache.put([7] * length, Past((7,) * length))
    assert len(cache) == 1


def test_what_is_typed_at_one_place_is_one_prompt():
    cache = PrefixCache(10**6, spare=3)
    start = list(range(50))
    for key in range(20):
        typed = [*start, 100 + key, 200 + key]
        cache.put(typed, Past(tuple(typed)))
    assert len(cache) == 1
    assert cache.longest([*start, 7]).length == 50
    other = [*start[:40], 9, 9, 9]
    cache.put(other, Past(tuple(other)))
    assert len(cache) == 2


@given(PROMPTS, st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(0, 4))
def test_spare_tokens_are_the_most_that_is_lost(prompts, asked, spare):
    exact, sparing = PrefixCache(10**6), PrefixCache(10**6, spare)
    for prompt in prompts:
        for cache in (exact, sparing):
            cache.put(prompt, Past(tuple(prompt)))
    lost = exact.longest(asked).length - sparing.longest(asked).length
    assert 0 <= lost <= spare * len(prompts)
    assert len(sparing) <= len(exact)
