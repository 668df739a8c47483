"""Canvases that take their first step in the forward of their prompt's end: fewer forwards, and
the same frames."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

from dg_engine.job import DoneKind, MaskRule

from tests.engine_contract import frames_of
from tests.engine_fixtures import job
from tests.vllm.conftest import _planned_ahead, options, solver_of
from tests.vllm.test_load import run_and_maybe_cancel
from tests.vllm.test_parity import JOBS, OPEN, assert_same, solved

pytestmark = pytest.mark.asyncio(loop_scope="module")
MOST_TOKENS = 192
"""Of a step."""


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=["one step at a time", "planned ahead"]
)
async def joining(request: pytest.FixtureRequest, checkpoint: Path):
    """The attention that tells rows of one sequence apart on a CPU is the anchored one."""
    from dg_engine.vllm_engine import VllmEngine
    from vllm.engine.arg_utils import AsyncEngineArgs

    with pytest.MonkeyPatch.context() as patch:
        if request.param == "planned ahead":
            patch.setattr(AsyncEngineArgs, "create_engine_config", _planned_ahead)
        chosen = options(
            mask_rule=MaskRule.ANCHORED, max_model_len=320, max_num_batched_tokens=MOST_TOKENS
        )
        engine = await VllmEngine.start(checkpoint, chosen)
    yield engine
    await engine.close()


@pytest.fixture(scope="module")
def anchored(checkpoint: Path) -> Any:
    return solver_of(checkpoint, MaskRule.ANCHORED)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 50])
async def test_the_first_step_needs_no_forward_before_it(joining: Any, anchored: Any, length: int):
    canvas_job = job(id=f"{length}", prompt=[20 + n for n in range(length)], max_steps=3)
    frames = await frames_of(joining, canvas_job)
    assert_same(frames, solved(anchored, canvas_job))
    assert [frame.forwards for frame in frames] == [1, 2, 3]


async def test_a_prompt_longer_than_a_step_joins_once_it_is_cached(joining: Any, anchored: Any):
    await joining.llm.reset_prefix_cache()
    prompt = [20 + (3 * n) % 200 for n in range(MOST_TOKENS + 7)]
    forwards: list[int] = []
    for number in range(2):
        canvas_job = job(id=f"long {number}", prompt=prompt, seed=number)
        frames = await frames_of(joining, canvas_job)
        assert_same(frames, solved(anchored, canvas_job))
        forwards.append(frames[0].forwards)
    assert forwards == [3, 1]


async def test_frames_stay_the_same_in_a_batch_of_every_phase(joining: Any, anchored: Any):
    jobs = [
        job(**{"prompt": [n + 20, *range(30, 40 + 5 * n)], "seed": n, **fields, "id": name})
        for n, (name, fields) in enumerate(JOBS.items())
    ]
    for _ in range(2):  # the second time behind cached prompts
        together = await asyncio.gather(*(frames_of(joining, each) for each in jobs))
        for canvas_job, frames in zip(jobs, together, strict=True):
            assert_same(frames, solved(anchored, canvas_job))


async def test_a_batch_that_would_grow_too_large_waits_with_its_canvas(joining: Any, anchored: Any):
    prompts = [[n + 20, *range(30, 75)] for n in range(4)]
    jobs = [job(**OPEN, id=f"wide {n}", prompt=prompt) for n, prompt in enumerate(prompts)]
    together = await asyncio.gather(*(frames_of(joining, each) for each in jobs))
    for canvas_job, frames in zip(jobs, together, strict=True):
        assert_same(frames, solved(anchored, canvas_job))
    # 62 tokens each: no more than three fit a step with their canvases.
    assert sorted(frames[0].forwards for frames in together) != [1, 1, 1, 1]


async def test_cancels_at_any_time_leave_no_slot_or_block(joining: Any):
    chance = random.Random(2)
    kinds = await asyncio.gather(*(run_and_maybe_cancel(joining, n, chance) for n in range(60)))
    assert DoneKind.ERROR not in kinds
    assert (await frames_of(joining, job()))[-1].done.kind is DoneKind.MAX_STEPS
    assert joining.jobs == 0
    assert joining.llm.get_num_unfinished_requests() == 0
    (runner_slots, our_slots, written) = (await joining.llm.collective_rpc("slots_in_use"))[0]
    assert (runner_slots, our_slots, written) == (our_slots, our_slots, our_slots)
    assert our_slots <= 1  # the last job's, until the next step
    assert await joining.llm.reset_prefix_cache()


async def test_only_an_attention_that_tells_rows_apart_joins():
    from types import SimpleNamespace

    from dg_engine.vllm_plugin.joining import joins_canvases
    from dg_engine.vllm_plugin.options import JOINED_CANVASES

    def config(backend: str | None, device: str = "cuda", **changed: Any) -> Any:
        parallel = {"pipeline_parallel_size": 1, "decode_context_parallel_size": 1}
        return SimpleNamespace(
            attention_config=SimpleNamespace(backend=backend and SimpleNamespace(name=backend)),
            additional_config=changed.pop("additional", {}),
            device_config=SimpleNamespace(device_type=device),
            parallel_config=SimpleNamespace(**{**parallel, **changed}),
        )

    assert joins_canvases(config("CUSTOM"), None)
    assert joins_canvases(config(None, "cpu"), MaskRule.ANCHORED)
    assert not joins_canvases(config(None, "cpu"), MaskRule.SYMMETRIC)
    assert not joins_canvases(config("FLASH_ATTN"), MaskRule.ANCHORED)
    assert not joins_canvases(config("CUSTOM", pipeline_parallel_size=2), None)
    assert not joins_canvases(config("CUSTOM", additional={JOINED_CANVASES: False}), None)
