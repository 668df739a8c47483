"""Each rule of the reference sampler, against cases worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from dg_engine.job import Rule, Stop, StopKind
from dg_engine.sampler import (
    Rules,
    SeededDraws,
    Vocabulary,
    _rank,
    accept_entropy_bound,
    accept_top_k,
    denoise_step,
    entropy,
    start,
    temperature,
    wanted_region,
)
from hypothesis import given, settings
from hypothesis import strategies as st

VOCAB = 8
EOS, NEWLINE = 1, 2
CPU = torch.device("cpu")
VOCABULARY = Vocabulary(
    torch.tensor([i == EOS for i in range(VOCAB)]),
    torch.tensor([i == NEWLINE for i in range(VOCAB)]),
)


class FixedDraws:
    """Noise and candidates that a test can recognise."""

    def __init__(self, noise: int = 7, candidate: int = 6) -> None:
        self._noise, self._candidate = noise, candidate

    def noise(self, rows: int, canvas: int) -> torch.Tensor:
        return torch.full((rows, canvas), self._noise)

    def candidates(self, logits: torch.Tensor) -> torch.Tensor:
        return torch.full(logits.shape[:-1], self._candidate)


def roles_of(text: str) -> torch.Tensor:
    """One row of roles: `h` hole, `s` seed, `p` pin."""
    return torch.tensor([["hsp".index(c) for c in text]], dtype=torch.uint8)


def logits_for(ids: list[int], sharpness: float | list[float] = 20.0) -> torch.Tensor:
    """Logits [1, canvas, vocab] that prefer one id per position, each with its sharpness."""
    heights = [sharpness] * len(ids) if isinstance(sharpness, float) else sharpness
    out = torch.zeros(1, len(ids), VOCAB)
    for position, (token, height) in enumerate(zip(ids, heights, strict=True)):
        out[0, position, token] = height
    return out


def test_entropy_of_a_fair_coin_is_log_two_and_of_a_ban_zero():
    logits = torch.tensor([[0.0, 0.0, -math.inf], [5.0, -math.inf, -math.inf]])
    torch.testing.assert_close(entropy(logits), torch.tensor([math.log(2), 0.0]))


def test_the_entropy_bound_accepts_while_the_sum_before_stays_in_budget():
    # Sorted: .01 .04 .06 .2; sums before each: 0, .01, .05, .11. The bound .1 takes three.
    found = accept_entropy_bound(
        torch.tensor([[0.06, 0.2, 0.01, 0.04]]), torch.ones(1, 4, dtype=torch.bool), 0.1
    )
    assert found.tolist() == [[True, False, True, True]]


def test_the_most_certain_position_is_always_accepted():
    found = accept_entropy_bound(torch.tensor([[5.0, 3.0]]), torch.ones(1, 2, dtype=torch.bool), 0)
    assert found.tolist() == [[False, True]]


def test_pins_take_nothing_from_the_entropy_budget():
    free = torch.tensor([[False, True, True]])
    found = accept_entropy_bound(torch.tensor([[0.09, 0.05, 0.06]]), free, 0.055)
    assert found.tolist() == [[False, True, True]]


@pytest.mark.parametrize(
    ("step", "expected"), [(1, [0, 1, 0, 0, 0]), (2, [0, 1, 0, 1, 0]), (4, [1, 1, 0, 1, 1])]
)
def test_top_k_accepts_its_share_of_the_free_positions(step: int, expected: list[int]):
    # Four free positions over four steps: one more each step; position 2 is pinned.
    free = torch.tensor([[True, True, False, True, True]])
    found = accept_top_k(torch.tensor([[0.9, 0.1, 0.0, 0.2, 0.8]]), free, step, 4)
    assert found.int().tolist() == [expected]


def test_top_k_rounds_its_share_up():
    free = torch.ones(1, 3, dtype=torch.bool)
    counts = [int(accept_top_k(torch.rand(1, 3), free, s, 4).sum()) for s in (1, 2, 3, 4)]
    assert counts == [1, 2, 3, 3]


def test_the_temperature_follows_the_jobs_own_length():
    short, long = Rules(max_steps=6), Rules(max_steps=48)
    assert temperature(6, short) == temperature(48, long) == pytest.approx(0.8)
    assert temperature(1, short) == pytest.approx(0.4 + 0.4 / 6)
    assert temperature(43, long) == pytest.approx(0.4 + 0.4 * 43 / 48)


@pytest.mark.parametrize(
    ("stop", "ids", "expected"),
    [
        (Stop(), [3, 1, 4, 2, 5], "11111"),
        (Stop(StopKind.FIRST_EOS), [3, 1, 4, 2, 5], "11000"),
        (Stop(StopKind.FIRST_EOS), [3, 4, 4, 2, 5], "11111"),
        (Stop(StopKind.FIRST_LINE), [3, 4, 2, 2, 5], "11100"),
        (Stop(StopKind.FIRST_LINE), [3, 1, 2, 2, 5], "11000"),
        (Stop(StopKind.LINES, 2), [3, 2, 4, 2, 5], "11110"),
        (Stop(StopKind.LINES, 2), [3, 2, 1, 2, 5], "11100"),
    ],
)
def test_the_wanted_region_ends_where_the_job_says(stop: Stop, ids: list[int], expected: str):
    found = wanted_region(torch.tensor([ids]), torch.ones(1, 5, dtype=torch.bool), stop, VOCABULARY)
    assert "".join(str(int(x)) for x in found[0]) == expected


def test_a_pinned_line_break_does_not_end_the_wanted_region():
    free = torch.tensor([[True, False, True]])
    stop = Stop(StopKind.FIRST_LINE)
    found = wanted_region(torch.tensor([[3, NEWLINE, 4]]), free, stop, VOCABULARY)
    assert found.tolist() == [[True, False, True]]


def run(roles, given_ids, logit_steps, rules, draws=None, banned=None):
    """Steps over given logits until done; returns every Step."""
    draws = draws or FixedDraws()
    given_ids = torch.tensor([given_ids])
    state = start(given_ids, roles, draws, stability=rules.stability)
    steps = []
    for logits in logit_steps:
        step = denoise_step(
            state, logits, given_ids, roles, rules, draws, VOCABULARY, banned=banned
        )
        steps.append(step)
        state = step.state
    return steps


def test_pins_are_exact_at_every_input_and_in_the_answer():
    roles = roles_of("hphp")
    logits = [logits_for([5, 5, 5, 5])] * 3
    for step in run(roles, [0, 3, 0, 4], logits, Rules(max_steps=3)):
        assert step.state.ids[0, 1] == 3
        assert step.state.argmax[0].tolist() == [5, 3, 5, 4]


def test_a_pin_that_the_model_dislikes_does_not_delay_the_stop():
    # The hole is settled; the pin's logits are flat and change their favourite each step.
    roles = roles_of("hp")
    logits = [logits_for([5, 3 + i % 2], [30.0, 0.1]) for i in range(3)]
    steps = run(roles, [0, 6], logits, Rules(max_steps=9))
    assert [bool(s.state.done[0]) for s in steps] == [False, True, True]


def test_a_row_is_done_only_after_stability_more_equal_drafts():
    logits = [logits_for([5, 5], 30.0)] * 4
    for stability in (0, 1, 2):
        steps = run(roles_of("hh"), [0, 0], logits, Rules(max_steps=9, stability=stability))
        assert [bool(s.state.done[0]) for s in steps].index(True) == stability


def test_an_uncertain_row_does_not_stop_though_it_is_stable():
    logits = [logits_for([5, 5], 1.0)] * 3
    steps = run(roles_of("hh"), [0, 0], logits, Rules(max_steps=9))
    assert not any(bool(s.state.done[0]) for s in steps)


def test_only_the_wanted_positions_must_settle():
    # Position 0 ends the hole; position 2 keeps changing behind it.
    logits = [logits_for([EOS, 3, 3 + i % 3], 30.0) for i in range(3)]
    rules = Rules(max_steps=9, stop=Stop(StopKind.FIRST_EOS))
    steps = run(roles_of("hhh"), [0, 0, 0], logits, rules)
    assert [bool(s.state.done[0]) for s in steps] == [False, True, True]


def test_what_is_not_accepted_becomes_noise():
    rules = Rules(rule=Rule.TOP_K, max_steps=4)
    (step,) = run(roles_of("hhhh"), [0] * 4, [logits_for([5] * 4, [1.0, 9.0, 1.0, 1.0])], rules)
    assert step.accepted.int().tolist() == [[0, 1, 0, 0]]
    assert step.state.ids.tolist() == [[7, 5, 7, 7]]


def test_seeds_are_kept_for_their_steps_and_then_renoised_where_least_certain():
    rules = Rules(rule=Rule.TOP_K, max_steps=9, keep_seed_steps=2)
    logits = [logits_for([5, 5, 5], [9.0, 1.0, 1.0])] * 3
    steps = run(roles_of("shs"), [3, 0, 4], logits, rules)
    assert steps[0].state.ids.tolist() == [[5, 7, 4]]
    assert steps[1].state.ids.tolist() == [[5, 7, 4]]
    assert steps[2].state.ids.tolist() == [[5, 7, 7]]


def test_a_seed_starts_as_given():
    state = start(torch.tensor([[3, 4, 5]]), roles_of("hsp"), FixedDraws(), stability=1)
    assert state.ids.tolist() == [[7, 4, 5]]


def test_the_entropy_bound_takes_candidates_and_top_k_the_argmax():
    for rule, expected in ((Rule.ENTROPY_BOUND, 6), (Rule.TOP_K, 5)):
        (step,) = run(roles_of("h"), [0], [logits_for([5])], Rules(rule=rule, max_steps=2))
        assert step.state.ids.tolist() == [[expected]]
        assert step.state.argmax.tolist() == [[5]]


def test_banned_ids_are_never_proposed_and_carry_no_entropy():
    banned = torch.tensor([i in (5, 6) for i in range(VOCAB)])
    (step,) = run(
        roles_of("h"), [0], [logits_for([5])], Rules(rule=Rule.TOP_K, max_steps=1), banned=banned
    )
    assert step.state.argmax.item() not in (5, 6)
    assert step.entropy.item() == pytest.approx(math.log(VOCAB - 2), rel=1e-4)


def test_a_finished_row_stays_while_others_go_on():
    rules = Rules(max_steps=9)
    roles = torch.zeros(2, 1, dtype=torch.uint8)
    draws = FixedDraws()
    given_ids = torch.zeros(2, 1, dtype=torch.int64)
    state = start(given_ids, roles, draws, stability=1)
    drafts = []
    for step in range(4):
        sure = logits_for([5], 30.0) if step < 2 else logits_for([3], 30.0)
        logits = torch.cat((sure, logits_for([4], 0.5)))
        out = denoise_step(state, logits, given_ids, roles, rules, draws, VOCABULARY)
        state = out.state
        drafts.append(state.argmax[:, 0].tolist())
    assert state.done.tolist() == [True, False]
    assert [d[0] for d in drafts] == [5, 5, 5, 5]


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 6))
def test_a_rows_draws_depend_on_its_seed_alone(seed: int, rows: int, canvas: int):
    logits = torch.randn(rows, canvas, VOCAB)
    together = SeededDraws([seed + r for r in range(rows)], VOCAB, CPU)
    noise, candidates = together.noise(rows, canvas), together.candidates(logits)
    for row in range(rows):
        alone = SeededDraws([seed + row], VOCAB, CPU)
        assert torch.equal(alone.noise(1, canvas)[0], noise[row])
        assert torch.equal(alone.candidates(logits[row : row + 1])[0], candidates[row])


def test_gumbel_candidates_follow_the_softmax():
    logits = torch.log(torch.tensor([0.6, 0.3, 0.1])).expand(1, 20_000, 3)
    found = SeededDraws([1], 3, CPU).candidates(logits)[0].bincount(minlength=3) / 20_000
    torch.testing.assert_close(found, torch.tensor([0.6, 0.3, 0.1]), atol=0.015, rtol=0)


def test_places_are_those_of_a_stable_sort():
    chance = torch.Generator().manual_seed(3)
    values = torch.randint(0, 5, (6, 40), generator=chance).float()
    values[0] = 1.0
    values[1, 7:] = math.inf
    assert torch.equal(_rank(values), values.argsort(dim=-1, stable=True).argsort(dim=-1))
