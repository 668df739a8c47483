"""The batched device sampler gives every request what the reference sampler gives it alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from dg_engine.job import JobError, Role, Rule, Stop, StopKind
from dg_engine.sampler import Rules, Step, Vocabulary, denoise_step, start
from dg_engine.vllm_plugin.canvas_sampler import CanvasSampler, Embedding
from dg_engine.vllm_plugin.drafts import Code, Draft, pack_draft, unpack_drafts
from dg_engine.vllm_plugin.draws import HashedDraws, candidate_seeds, noise_ids
from dg_engine.vllm_plugin.progress import Batch, Outcome
from dg_engine.vllm_plugin.request import CanvasRequest, Kind, score_request
from dg_engine.vllm_plugin.states import CanvasStates, Phase, Whole
from dg_kernels.reference import draw, soft_embedding
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

VOCAB, LENGTH, HIDDEN, SLOTS = 40, 12, 8, 10
EOS, NEWLINE, SPECIAL = 1, 2, 3
CPU = torch.device("cpu")


def mask(*ids: int) -> torch.Tensor:
    found = torch.zeros(VOCAB, dtype=torch.bool)
    found[list(ids)] = True
    return found


VOCABULARY = Vocabulary(mask(EOS), mask(NEWLINE, 30))
EMBEDDING = torch.randn(VOCAB, HIDDEN, generator=torch.Generator().manual_seed(5))
EMBEDDED = Embedding(
    lambda ids: EMBEDDING[ids],
    lambda soft: soft @ EMBEDDING,
    lambda logits, ids: soft_embedding(logits, ids, EMBEDDING, scale=1.0),
)


def request(roles: str = "hhhhhhhh", **fields: Any) -> CanvasRequest:
    """A request whose roles are letters: h, s and p."""
    values = {"max_steps": 5, "seed": 7, "text_only": 0} | fields
    canvas = [10 + i for i in range(len(roles))]
    return CanvasRequest(canvas, ["hsp".index(letter) for letter in roles], **values)


class Device:
    """States, their sampler, and steps over chosen slots."""

    def __init__(self, rows_per_pass: int = 1000, compiled: bool = False) -> None:
        self.states = CanvasStates(
            SLOTS, LENGTH, HIDDEN, vocab_size=VOCAB, device=CPU, dtype=torch.float32
        )
        self.sampler = CanvasSampler(
            self.states,
            VOCABULARY,
            mask(SPECIAL),
            EMBEDDED,
            rows_per_pass=rows_per_pass,
        )
        if compiled:
            self.sampler.compile("aot_eager")

    def step(
        self, reads: dict[int, torch.Tensor], prefills: tuple[int, ...] = ()
    ) -> tuple[Outcome, dict[int, slice]]:
        """Logits [width, vocab] by slot, and slots whose prompt ends; rows of each slot."""
        order = [*reads, *prefills]
        sizes = [len(reads[s]) if s in reads else 0 for s in order]
        states = self.states
        batch = Batch(
            slots=torch.tensor(order),
            scheduled=torch.tensor(sizes),
            prefilled=torch.tensor([s in prefills for s in order]),
            row_slots=torch.tensor(
                [s for s, n in zip(order, sizes, strict=True) for _ in range(n)], dtype=torch.int64
            ),
            row_positions=torch.tensor([i for n in sizes for i in range(n)], dtype=torch.int64),
            draws_candidates=not states.candidate_slots.isdisjoint(order),
            conditions=not states.repeated_slots.isdisjoint(order),
        )
        logits = torch.cat(list(reads.values())) if reads else torch.zeros(0, VOCAB)
        outcome = self.sampler.step(logits, batch)
        rows, at = {}, 0
        for slot, size in zip(order, sizes, strict=True):
            rows[slot] = slice(at, at + size)
            at += size
        return outcome, rows


class Reference:
    """One request in the reference sampler, with the same draws."""

    def __init__(self, asked: CanvasRequest, banned: torch.Tensor | None = None) -> None:
        self.rules = Rules(
            Rule(asked.rule), asked.max_steps, asked.entropy_bound, asked.confidence,
            asked.stability, asked.t_min, asked.t_max, asked.keep_seed_steps,
            Stop(StopKind(asked.stop), asked.lines),
        )  # fmt: skip
        self.lo = next(i for i, role in enumerate(asked.roles) if role != Role.PIN)
        self.given = torch.tensor([asked.canvas])[:, self.lo :]
        self.roles = torch.tensor([asked.roles])[:, self.lo :]
        self.draws = HashedDraws([asked.seed], VOCAB, CPU)
        self.banned = banned
        self.state = start(self.given, self.roles, self.draws, stability=asked.stability)

    def step(self, logits: torch.Tensor) -> Step:
        step = denoise_step(
            self.state, logits[None, self.lo :], self.given, self.roles, self.rules, self.draws,
            VOCABULARY, banned=self.banned,
        )  # fmt: skip
        self.state = step.state
        return step


def logits_for(slot: int, step: int, width: int) -> torch.Tensor:
    """Logits that grow surer with every step and keep their favourites from the third on."""
    favourites = torch.Generator().manual_seed(100 * slot + min(step, 2))
    noise = torch.randn(width, VOCAB, generator=favourites)
    return noise * (1 + 4 * step) + torch.randn(
        width, VOCAB, generator=torch.Generator().manual_seed(10_000 + 100 * slot + step)
    )


REQUESTS = {
    "plain": request(),
    "seeded": request("sshshhhh", keep_seed_steps=2, seed=8),
    "pinned": request("pphhphhhpp", seed=9),
    "narrow": request("hh", seed=10, max_steps=3),
    "one line": request("hhhhhhpp", stop=StopKind.FIRST_LINE, max_steps=9, confidence=2.0),
    "two lines": request("hhhhhhhhhhhh", stop=StopKind.LINES, lines=2, confidence=2.0),
    "first end": request("hhshhhhhhh", stop=StopKind.FIRST_EOS, confidence=2.0, max_steps=9),
    "not stable": request(stability=0, confidence=1.0, max_steps=9),
    "very stable": request(stability=3, confidence=1.0, max_steps=9),
    "hot": request(t_min=0.9, t_max=2.0, entropy_bound=1.5, max_steps=7),
}


@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize(("rows_per_pass", "compiled"), [(1000, False), (7, False), (1000, True)])
def test_a_mixed_batch_is_step_by_step_what_the_reference_does(
    rule: Rule, rows_per_pass: int, compiled: bool
):
    device = Device(rows_per_pass, compiled)
    device.sampler.rehearse(torch.zeros(1, VOCAB))
    asked = {
        slot: CanvasRequest(**{f: getattr(r, f) for f in r.__struct_fields__} | {"rule": rule})
        for slot, r in enumerate(REQUESTS.values())
    }
    for slot, one in asked.items():
        device.states.add(slot, one)
    references = {slot: Reference(one) for slot, one in asked.items()}
    taken = dict.fromkeys(asked, 0)
    running: set[int] = set()
    codes: dict[int, int] = {}
    for turn in range(20):
        # One prompt ends at each turn, so the batch holds requests of every age.
        prefills = (turn,) if turn in asked else ()
        reads = {
            slot: logits_for(slot, taken[slot], asked[slot].width)
            for slot in asked
            if slot in running
        }
        if not reads and not prefills:
            break
        outcome, rows = device.step(reads, prefills)
        for slot, logits in reads.items():
            reference, at = references[slot], rows[slot]
            before = reference.state.argmax
            step = reference.step(logits)
            taken[slot] += 1
            lo = reference.lo
            state = device.states
            width = asked[slot].width
            assert torch.equal(state.argmax[slot, lo:width], step.state.argmax[0])
            assert torch.equal(outcome.row_ids[at][lo:], step.state.argmax[0])
            torch.testing.assert_close(outcome.row_entropy[at][lo:], step.entropy[0])
            assert set(outcome.row_steps[at].tolist()) == {taken[slot]}
            same = ((step.state.argmax == before) & (reference.roles != Role.PIN)).sum()
            assert set(outcome.row_settled[at].tolist()) == {int(same)}
            chosen = torch.log_softmax(step.processed, -1).gather(-1, step.state.argmax[..., None])
            torch.testing.assert_close(outcome.row_scores[at][lo:], chosen[0, :, 0])
            done = bool(step.state.done[0])
            spent = taken[slot] == asked[slot].max_steps
            expected = Code.CONVERGED if done else Code.MAX_STEPS if spent else Code.GOES_ON
            assert set(outcome.row_codes[at].tolist()) == {expected}
            if expected.final:
                running.discard(slot)
                codes[slot] = expected
                assert state.whole[slot, Whole.PHASE] == Phase.FINISHED
            else:
                assert torch.equal(state.ids[slot, lo:width], step.state.ids[0])
                free = (reference.roles[0] != Role.PIN)[:, None]
                soft = torch.softmax(step.processed[0], -1) @ EMBEDDING
                expected_soft = torch.where(free, soft, EMBEDDING[reference.given[0]])
                torch.testing.assert_close(state.conditioning[slot, lo:width], expected_soft)
        running.update(prefills)
    assert set(codes) == set(asked)
    assert {Code.CONVERGED, Code.MAX_STEPS} <= set(codes.values()) or rule is Rule.TOP_K


def is_for_rounding(entropy: torch.Tensor, bound: float) -> bool:
    """Whether a sum of entropies is so near the bound that the last digit decides.

    What the device adds up from a logarithm of a sum differs by some 1e-7 nats a position.
    """
    sums = torch.cumsum(entropy.sort().values, 0)
    return bool(((sums - bound).abs() < 1e-5).any())


@settings(max_examples=30)
@given(st.integers(0, 2**40), st.integers(1, LENGTH), st.data())
def test_any_request_is_what_the_reference_does(seed: int, width: int, data: st.DataObject):
    roles = data.draw(st.lists(st.sampled_from("hsp"), min_size=width, max_size=width))
    roles[data.draw(st.integers(0, width - 1))] = "h"
    one = request(
        "".join(roles),
        seed=seed,
        rule=data.draw(st.sampled_from(list(Rule))),
        stop=data.draw(st.sampled_from(list(StopKind))),
        lines=data.draw(st.integers(1, 3)),
        confidence=data.draw(st.sampled_from([0.005, 1.0])),
        entropy_bound=data.draw(st.floats(0, 3)),
        keep_seed_steps=data.draw(st.integers(0, 2)),
        max_steps=4,
    )
    device, reference = Device(), Reference(one)
    device.states.add(4, one)
    device.step({}, (4,))
    first = device.states.ids[4, reference.lo : width]
    assert torch.equal(first, reference.state.ids[0])
    for taken in range(4):
        logits = logits_for(seed % 1000, taken, width)
        outcome, _ = device.step({4: logits})
        step = reference.step(logits)
        assert torch.equal(device.states.argmax[4, reference.lo : width], step.state.argmax[0])
        if step.state.done[0]:
            assert outcome.row_codes[0] == Code.CONVERGED
            return
        free = step.entropy[0][reference.roles[0] != Role.PIN]
        if one.rule is Rule.ENTROPY_BOUND and is_for_rounding(free, one.entropy_bound):
            return
        if taken < 3:
            assert torch.equal(device.states.ids[4, reference.lo : width], step.state.ids[0])
    assert outcome.row_codes[0] == Code.MAX_STEPS


def test_a_committed_block_is_followed_by_an_open_one_and_the_last_is_not_committed():
    one = request("hhhp", blocks=2, max_steps=2, may_end=0)
    device = Device()
    device.states.add(0, one)
    device.step({}, (0,))
    device.step({0: logits_for(0, 0, 4)})
    outcome, _ = device.step({0: logits_for(0, 1, 4)})
    assert set(outcome.row_codes.tolist()) == {Code.BLOCK_MAX_STEPS}
    assert outcome.emitted_counts.tolist() == [0]
    block = device.states.argmax[0, :4].clone()
    assert torch.equal(device.states.ids[0, :4], block)
    assert device.states.conditioning[0].abs().sum() == 0
    outcome, _ = device.step({0: logits_for(0, 2, 4)})
    assert outcome.emitted_counts.tolist() == [4]
    assert torch.equal(outcome.emitted[0, :4], block)
    assert set(outcome.row_codes.tolist()) == {-1}
    behind = Reference(request("h" * LENGTH, max_steps=2, may_end=0), mask(EOS))
    assert torch.equal(outcome.next_ids[0], behind.state.ids[0])
    for taken, code in ((0, Code.GOES_ON), (1, Code.MAX_STEPS)):
        logits = logits_for(9, taken, LENGTH)
        outcome, _ = device.step({0: logits})
        assert torch.equal(outcome.row_ids, behind.step(logits).state.argmax[0])
        assert set(outcome.row_codes.tolist()) == {code}


def test_an_end_token_makes_a_block_the_last():
    device = Device()
    device.states.add(0, request("hhp", blocks=5, max_steps=1))
    device.step({}, (0,))
    logits = torch.zeros(3, VOCAB)
    logits[1, EOS] = 50.0
    outcome, _ = device.step({0: logits})
    assert set(outcome.row_codes.tolist()) == {Code.MAX_STEPS}


@pytest.mark.parametrize(
    ("fields", "banned"),
    [
        ({"text_only": 1}, {SPECIAL}),
        ({"single_line": 1}, {NEWLINE, 30}),
        ({"may_end": 0}, {EOS}),
        ({"text_only": 1, "single_line": 1, "may_end": 0}, {SPECIAL, NEWLINE, 30, EOS}),
    ],
)
def test_banned_ids_are_never_proposed(fields: dict[str, int], banned: set[int]):
    device = Device()
    device.states.add(0, request("hhhh", rule=Rule.ENTROPY_BOUND, entropy_bound=9.0, **fields))
    device.states.add(1, request("hhhh", text_only=0))
    device.step({}, (0, 1))
    logits = torch.zeros(4, VOCAB)
    logits[:, list(banned)] = 9.0
    outcome, rows = device.step({0: logits, 1: logits})
    assert not set(outcome.row_ids[rows[0]].tolist()) & banned
    assert set(outcome.row_ids[rows[1]].tolist()) <= banned
    reference = Reference(
        request("hhhh", rule=Rule.ENTROPY_BOUND, entropy_bound=9.0), mask(*banned)
    )
    step = reference.step(logits)
    torch.testing.assert_close(outcome.row_entropy[rows[0]], step.entropy[0])
    assert torch.equal(device.states.ids[0, :4], step.state.ids[0])


def test_a_score_is_the_log_probability_of_the_id_behind_and_takes_one_step():
    device = Device()
    device.states.add(0, score_request([5, 6, 7]))
    device.step({}, (0,))
    assert device.states.whole[0, Whole.PHASE] == Phase.SCORE
    assert device.states.ids[0, :3].tolist() == [5, 6, 7]
    logits = logits_for(0, 1, 3)
    outcome, _ = device.step({0: logits})
    expected = torch.log_softmax(logits, -1)
    torch.testing.assert_close(
        outcome.row_scores[:2], torch.stack((expected[0, 6], expected[1, 7]))
    )
    assert set(outcome.row_codes.tolist()) == {Code.CONVERGED}
    assert outcome.emitted_counts.tolist() == [0]


def test_a_greedy_line_reads_what_it_chose_until_an_end_token():
    device = Device()
    asked = CanvasRequest([11], [2], kind=Kind.GREEDY, max_steps=9, single_line=1)
    device.states.add(0, asked)
    device.step({}, (0,))
    codes = []
    for taken, best in enumerate((SPECIAL, 12, NEWLINE)):
        logits = torch.zeros(1, VOCAB)
        logits[0, best] = 9.0
        logits[0, 20] = 5.0
        read = int(device.states.ids[0, 0])
        outcome, _ = device.step({0: logits})
        assert outcome.emitted[0, 0] == read
        assert outcome.emitted_counts.tolist() == [1]
        codes.append((int(outcome.row_ids[0]), int(outcome.row_codes[0])))
        assert outcome.row_steps.tolist() == [taken + 1]
    # A special token is not text, so the next best stands in.
    assert codes == [(20, Code.GOES_ON), (12, Code.GOES_ON), (NEWLINE, Code.CONVERGED)]


def test_a_greedy_line_stops_at_its_limit_and_knows_when_it_was_preempted():
    device = Device()
    asked = CanvasRequest([11], [2], kind=Kind.GREEDY, max_steps=1)
    device.states.add(0, asked)
    device.states.add(1, asked, committed=1)
    device.step({}, (0, 1))
    logits = torch.zeros(1, VOCAB)
    logits[0, 8] = 9.0
    outcome, _ = device.step({0: logits, 1: logits})
    assert outcome.row_codes.tolist() == [Code.MAX_STEPS, Code.LOST]


def test_a_forward_of_another_width_changes_nothing():
    device = Device()
    device.states.add(0, request("hhhh"))
    device.step({}, (0,))
    before = [t.clone() for t in (device.states.whole, device.states.ids)]
    outcome, _ = device.step({0: logits_for(0, 0, 6)})
    assert set(outcome.row_codes.tolist()) == {-1}
    assert torch.equal(device.states.whole, before[0])
    assert torch.equal(device.states.ids, before[1])
    assert not device.states.conditioning.any()


def test_a_slot_forgets_its_last_owner():
    device, fresh = Device(), Device()
    device.states.add(0, request("hshphh", blocks=2, stability=2, rule=Rule.ENTROPY_BOUND))
    device.step({}, (0,))
    device.step({0: logits_for(0, 0, 6)})
    device.states.remove(0)
    assert not device.states.candidate_slots
    assert not device.states.repeated_slots
    for each in (device, fresh):
        each.states.add(0, request("hh", seed=3))
        each.step({}, (0,))
    for name in ("whole", "real", "ids", "given", "roles", "history", "conditioning"):
        assert torch.equal(getattr(device.states, name)[..., 0:1, :] if name == "history"
                           else getattr(device.states, name)[0],
                           getattr(fresh.states, name)[..., 0:1, :] if name == "history"
                           else getattr(fresh.states, name)[0]), name  # fmt: skip


def test_a_preempted_request_goes_on_behind_the_blocks_it_has_committed():
    device = Device()
    device.states.add(0, request("hhhp", blocks=4), committed=4 + LENGTH)
    assert device.states.whole[0, Whole.BLOCKS] == 2
    assert device.states.whole[0, Whole.WIDTH] == LENGTH
    assert device.states.roles[0].tolist() == [Role.HOLE] * LENGTH


def test_a_step_reads_nothing_back_from_the_device():
    # A fake tensor has no values: whatever asks for one raises.
    one = request("hhsp", rule=Rule.ENTROPY_BOUND, blocks=2)
    with FakeTensorMode(allow_non_fake_inputs=True):
        states = CanvasStates(
            SLOTS, LENGTH, HIDDEN, vocab_size=VOCAB, device=CPU, dtype=torch.float32
        )
    real = Device()
    real.states.add(0, one)
    batch = Batch(
        torch.tensor([0, 1]), torch.tensor([4, 0]), torch.tensor([False, True]),
        torch.zeros(4, dtype=torch.int64), torch.arange(4), True, True,
    )  # fmt: skip
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        faked = Batch(*(fake.from_tensor(v) if isinstance(v, torch.Tensor) else v for v in batch))
        sampler = real.sampler
        sampler._states = states
        outcome = sampler.step(fake.from_tensor(torch.zeros(4, VOCAB)), faked)
    assert outcome.row_ids.shape == (4,)
    with FakeTensorMode() as fake, pytest.raises(Exception, match="_local_scalar_dense"):
        fake.from_tensor(torch.zeros(1)).item()


def test_draws_depend_on_seed_step_and_position_and_are_uniform():
    seeds, positions = torch.arange(200)[:, None], torch.arange(100)
    first = noise_ids(seeds, torch.tensor(0), positions, VOCAB)
    assert torch.equal(
        first[3:4, 7:8], noise_ids(seeds[3:4], torch.tensor(0), positions[7:8], VOCAB)
    )
    assert (first != noise_ids(seeds, torch.tensor(1), positions, VOCAB)).float().mean() > 0.9
    shares = first.flatten().bincount(minlength=VOCAB) / first.numel()
    torch.testing.assert_close(shares, torch.full((VOCAB,), 1 / VOCAB), atol=0.004, rtol=0)


def test_candidates_follow_the_softmax_and_never_take_what_has_no_probability():
    probabilities = torch.tensor([0.0, 0.6, 0.0, 0.3, 0.1, 0.0]).expand(20_000, 6)
    seeds = candidate_seeds(torch.arange(20_000), torch.tensor(1), torch.tensor(0))
    found = draw(probabilities.log(), seeds)
    shares = found.bincount(minlength=6) / 20_000
    torch.testing.assert_close(shares, probabilities[0], atol=0.015, rtol=0)
    assert set(found.tolist()) == {1, 3, 4}


def test_drafts_survive_the_way_and_may_be_joined():
    drafts = [
        Draft(2, Code.GOES_ON, 3, 4, 1000, [5, 262_143], [0.25, 1.5], [-0.5, -30.0], 7),
        Draft(3, Code.CONVERGED, 1, 5, 1000, [9], [0.0], [float("-inf")]),
    ]
    joined = [value for draft in drafts for value in pack_draft(draft)]
    assert list(unpack_drafts(joined)) == drafts
    with pytest.raises(ValueError, match="cut short"):
        list(unpack_drafts(joined[:-1]))


def test_a_request_survives_flat_arguments():
    one = request("hsp", rule=Rule.ENTROPY_BOUND, stop=StopKind.LINES, lines=3, blocks=2)
    args = one.to_args()
    assert all(isinstance(v, (int, float, str, list)) for v in args.values())
    assert CanvasRequest.from_args({**args, "other": 1}) == one
    assert CanvasRequest.from_args({"other": 1}) is None
    assert CanvasRequest.from_args(None) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dg_roles": [0]}, "one role per id"),
        ({"dg_canvas": "abc"}, "cannot be read"),
        ({"dg_max_steps": 0}, "at least one step"),
    ],
)
def test_arguments_that_cannot_be_run_are_one_sentence(change: dict[str, Any], words: str):
    with pytest.raises(JobError, match=words) as caught:
        CanvasRequest.from_args({**request("hh").to_args(), **change})
    assert "\n" not in str(caught.value)
