"""Many jobs at once, cancelled at any time, leave nothing behind; the cache and the limits hold."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

from dg_engine.job import DoneKind, Priority, Role, Rule
from dg_engine.vllm_plugin.request import CanvasRequest

from tests.engine_contract import LONG, frames_of
from tests.engine_fixtures import job

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def run_and_maybe_cancel(engine: Any, number: int, chance: random.Random) -> DoneKind | None:
    """One job; a third is cancelled by name and a third by leaving, after some frames."""
    fields: dict[str, Any] = {
        "id": f"load {number}",
        "prompt": [number % 90 + 20, *range(30, 30 + chance.randrange(1, 60))],
        "seed": number,
        "priority": chance.choice(list(Priority)),
        "widths": chance.choice([[], [1, 4]]),
        "causal_candidate": chance.random() < 0.2,
    }
    how, frames_before = chance.choice(["stay", "cancel", "leave"]), chance.randrange(0, 3)
    if how == "stay":
        return (await frames_of(engine, job(**fields)))[-1].done.kind
    slow = {**LONG, **fields, "widths": [], "causal_candidate": False}
    stream, seen = engine.submit(job(**slow)), 0
    async for frame in stream:
        seen += 1
        if frame.done is not None:
            return frame.done.kind
        if seen > frames_before:
            if how == "leave":
                await stream.aclose()
                return None
            await engine.cancel(fields["id"])
    raise AssertionError("a job ended without a done frame")


@pytest.mark.timeout(900)  # a busy machine takes long
async def test_200_jobs_with_random_cancels_leave_no_slot_task_or_block(engine: Any):
    chance = random.Random(1)
    tasks_before = len(asyncio.all_tasks())
    kinds = await asyncio.gather(*(run_and_maybe_cancel(engine, n, chance) for n in range(200)))
    assert {DoneKind.CANCELLED, DoneKind.MAX_STEPS, None} <= set(kinds)
    assert DoneKind.ERROR not in kinds
    # One more job, so that vLLM has planned a step behind the last abort.
    assert (await frames_of(engine, job()))[-1].done.kind is DoneKind.MAX_STEPS
    assert engine.jobs == 0
    assert engine.llm.get_num_unfinished_requests() == 0
    for _ in range(50):
        if len(asyncio.all_tasks()) <= tasks_before:
            break
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) <= tasks_before
    (runner_slots, our_slots, written) = (await engine.llm.collective_rpc("slots_in_use"))[0]
    assert (runner_slots, our_slots, written) == (our_slots, our_slots, our_slots)
    assert our_slots <= 1  # the last job's, until the next step
    # vLLM says no while any block is still held.
    assert await engine.llm.reset_prefix_cache()


async def test_a_second_job_over_the_same_prompt_reads_less_than_a_block(engine: Any):
    await engine.llm.reset_prefix_cache()
    prompt = [(7 * i) % 250 + 20 for i in range(100)]
    first = (await frames_of(engine, job(prompt=prompt)))[-1]
    again = (await frames_of(engine, job(prompt=prompt, canvas=[0] * 8 + list(range(90, 98)))))[-1]
    assert first.cached_tokens == 0
    assert len(prompt) - again.cached_tokens <= 16
    assert again.ids[0][8:] == list(range(90, 98))


async def test_the_last_canvas_is_never_in_the_prefix_cache(engine: Any):
    await engine.llm.reset_prefix_cache()
    prompt = [(5 * i) % 250 + 20 for i in range(32)]
    answer = (await frames_of(engine, job(prompt=prompt, canvas=[0] * 16, roles=bytes(16))))[-1]
    behind = (await frames_of(engine, job(prompt=prompt + answer.ids[0])))[-1]
    assert behind.cached_tokens <= len(prompt)


async def test_a_canvas_costs_one_forward_per_step_and_none_to_commit_it(engine: Any):
    open_canvas = {"canvas": [0] * 16, "roles": bytes(16), "may_end": False}
    one = (await frames_of(engine, job(max_steps=5, **open_canvas)))[-1]
    assert one.forwards == 1 + 5
    two = (await frames_of(engine, job(max_steps=5, blocks=2, **open_canvas)))[-1]
    assert two.forwards == 1 + 5 + 1 + 5


async def test_a_job_past_its_deadline_answers_with_its_best_draft(engine: Any):
    late = {**LONG, "canvas": [0] * 8 + list(range(60, 68)), "roles": bytes([0] * 8 + [2] * 8)}
    last = (await frames_of(engine, job(deadline_ms=200, **late)))[-1]
    assert last.done.kind is DoneKind.DEADLINE
    assert last.ids[0][8:] == list(range(60, 68))


@pytest.mark.parametrize("rule", list(Rule))
async def test_a_pinned_canvas_comes_back_with_every_pin(engine: Any, rule: Rule):
    pins = {0: 90, 3: 91, 4: 92, 9: 93, 15: 94}
    canvas = [pins.get(i, 0) for i in range(16)]
    roles = bytes([Role.PIN if i in pins else Role.HOLE for i in range(16)])
    for frame in await frames_of(engine, job(canvas=canvas, roles=roles, rule=rule, max_steps=6)):
        assert {i: frame.ids[0][i] for i in pins} == pins


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prompt": list(range(20, 50)) * 5}, "The prompt has 150 tokens; this engine takes 144"),
        ({"stability": 9}, "stability is 9; this engine takes 0 to 4"),
        ({"prompt": [5], "widths": [1, 2]}, "needs a prompt of two tokens"),
        ({"canvas": [0] * 17, "roles": bytes(17)}, "takes 1 to 16"),
    ],
)
async def test_what_it_cannot_run_is_refused_in_one_sentence(engine: Any, fields: Any, words: str):
    (frame,) = await frames_of(engine, job(**fields))
    assert frame.done.kind is DoneKind.ERROR
    assert words in frame.done.message


async def test_a_malformed_request_from_outside_does_not_stop_the_engine(engine: Any):
    from dg_engine.engine import EngineError

    outside = CanvasRequest([999_999], [7])
    with pytest.raises(EngineError, match="refused the request as malformed"):
        async for _ in engine.host.backend.run([5, 6], outside, name="outside", priority=0):
            pass
    assert (await frames_of(engine, job()))[-1].done.kind is DoneKind.MAX_STEPS


async def test_plain_generation_goes_on_block_by_block_until_vllm_ends_it(engine: Any):
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt

    params = SamplingParams(temperature=1.0, max_tokens=20, ignore_eos=True, detokenize=False)
    prompt = TokensPrompt(prompt_token_ids=list(range(20, 40)))
    outputs = [o async for o in engine.llm.generate(prompt, params, "plain")]
    ids = outputs[-1].outputs[0].token_ids
    assert len(ids) == 20
    assert all(0 <= i < 300 for i in ids)
