"""Guesses from the prompt: the same greedy line in fewer forwards."""

from __future__ import annotations

import operator
from functools import lru_cache
from itertools import takewhile

import pytest
import torch
from dg_engine import causal
from dg_engine.causal import Candidate, greedy_candidate
from dg_engine.job import Role
from dg_engine.lookup import LONGEST, PromptLookup
from hypothesis import given
from hypothesis import strategies as st

from tests.engine_fixtures import job, load_tiny

tiny = lru_cache(load_tiny)
IDS = st.lists(st.integers(0, 3), max_size=24)


def plainly(ids: list[int], most: int) -> list[int]:
    """What followed the longest run at the end when it was seen last before."""
    for size in range(min(LONGEST, len(ids)), 0, -1):
        for start in range(len(ids) - size - 1, -1, -1):
            if ids[start : start + size] == ids[-size:]:
                return ids[start + size : start + size + most]
    return []


@given(IDS, IDS, st.integers(0, 6))
def test_a_guess_is_what_followed_the_last_occurrence(
    known: list[int], more: list[int], most: int
) -> None:
    lookup = PromptLookup(known)
    for token in more:
        lookup.append(token)
    assert lookup.guess(most) == plainly([*known, *more], most)


class Repeating:
    """A causal model whose next token follows from the last two, in float32."""

    reuses_prefixes = True

    def __init__(self, loaded, rule) -> None:
        self.inner = loaded.solver._model
        self.config, self.device = self.inner.config, self.inner.device
        self.rule = rule
        self.read: list[int] = []
        self.forwards = 0

    def encode(self, ids, past):
        self.forwards += 1
        found = list(past.ids) + ids.tolist()
        states = [self.rule(found[: past.length + 1 + n]) for n in range(len(ids))]
        return torch.tensor(states, dtype=torch.float32)[:, None], Past(tuple(found))

    def logits(self, hidden):
        wanted = hidden[..., 0].long()
        return torch.nn.functional.one_hot(wanted, self.config.vocab_size).float() * 20


class Past:
    """Tokens that were read."""

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = ids

    @property
    def length(self) -> int:
        return len(self.ids)

    def crop(self, length: int) -> Past:
        return Past(self.ids[:length])


def run(model, one, hidden, past, ends: frozenset[int], limit: int) -> tuple[Candidate, int]:
    """The candidate, and how many forwards it took."""
    turns = list(greedy_candidate(model, one, hidden, past, ends, limit, None))
    found = turns[-1]
    assert found is not None
    assert turns[:-1] == [None] * (len(turns) - 1)
    return found, len(turns) - 1


@given(
    st.lists(st.integers(5, 8), min_size=2, max_size=30),
    st.integers(1, 12),
    st.integers(0, 3),
    st.integers(1, 4),
)
def test_the_line_is_the_same_for_every_rule_of_a_model(
    prompt: list[int], limit: int, seed: int, step: int
) -> None:
    def rule(ids: list[int]) -> int:
        return 5 + (sum(ids[-2:]) * step + seed + len(ids) // 7) % 5

    model = Repeating(tiny(), rule)
    ends = frozenset({9})
    one = job(prompt=prompt)
    hidden = torch.tensor([float(rule(prompt))])
    found, forwards = run(model, one, hidden, Past(tuple(prompt)), ends, limit)
    expected: list[int] = []
    while len(expected) < limit and (token := rule([*prompt, *expected])) not in ends:
        expected.append(token)
    assert list(found.text) == expected
    assert forwards == model.forwards <= max(len(expected), 1)


@pytest.mark.parametrize("seed", range(6))
def test_the_real_forward_gives_the_same_line_without_guesses(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = tiny()
    model = loaded.solver._model
    generator = torch.Generator().manual_seed(seed)
    part = torch.randint(20, 60, (9,), generator=generator).tolist()
    one = job(prompt=part * 4, canvas=[0] * 16, roles=bytes([Role.HOLE] * 16))
    with torch.inference_mode():
        states, past = model.encode(torch.tensor(one.prompt), None)
        guessed, fewer = run(model, one, states[-1], past, frozenset(), 12)
        monkeypatch.setattr(causal, "GUESSED_TOKENS", 0)
        plain, more = run(model, one, states[-1], past, frozenset(), 12)
    assert guessed.text == plain.text
    assert guessed.mean == pytest.approx(plain.mean, abs=1e-4)
    assert fewer <= more == 11


def test_a_prompt_that_repeats_itself_takes_fewer_forwards() -> None:
    prompt = [5, 6, 7, 8, 5, 6, 7, 8, 5, 6]
    model = Repeating(tiny(), lambda ids: prompt[len(ids) % 4])
    hidden = torch.tensor([float(prompt[len(prompt) % 4])])
    found, forwards = run(model, job(prompt=prompt), hidden, Past(tuple(prompt)), frozenset(), 11)
    assert found.text == (7, 8, 5, 6, 7, 8, 5, 6, 7, 8, 5)
    assert forwards == 2
    assert sum(takewhile(bool, map(operator.eq, found.text, prompt[2:]))) == 8
