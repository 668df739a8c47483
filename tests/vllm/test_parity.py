"""With the same draws, vLLM's frames are the PyTorch engine's, step by step, in float32."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

import torch
from dg_engine.job import CanvasJob, Frame, Judge, JudgeKind, Priority, Role, Rule, Stop, StopKind

from tests.engine_contract import frames_of
from tests.engine_fixtures import job

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPEN = {"canvas": [0] * 16, "roles": bytes(16)}
HOLES = bytes([Role.HOLE] * 5 + [Role.PIN] * 11)
JOBS: dict[str, dict[str, Any]] = {
    "plain": {**OPEN, "may_end": False},
    "plain, by entropy": {**OPEN, "rule": Rule.ENTROPY_BOUND, "max_steps": 6},
    "pinned": {},
    "pinned, by entropy": {"rule": Rule.ENTROPY_BOUND, "max_steps": 5, "entropy_bound": 1.0},
    "seeded": {
        "canvas": list(range(40, 56)),
        "roles": bytes([Role.PIN, Role.PIN] + [Role.SEED] * 4 + [Role.HOLE] * 6 + [Role.PIN] * 4),
        "keep_seed_steps": 2,
        "max_steps": 5,
    },
    "narrow": {"canvas": [0, 0, 70], "roles": bytes([0, 0, 2])},
    "one position": {"canvas": [0], "roles": bytes(1)},
    "short prompt": {"prompt": [9, 8, 7]},
    "settles early": {**OPEN, "stop": Stop(StopKind.FIRST_EOS), "confidence": 9.0, "max_steps": 12},
    "one line": {"single_line": True, "stop": Stop(StopKind.FIRST_LINE), "may_end": False},
    "never stable": {"stability": 3, "confidence": 9.0, "max_steps": 8},
    "one step": {"max_steps": 1},
    "no hole": {"canvas": [5, 6], "roles": bytes([2, 2])},
    "two blocks": {**OPEN, "blocks": 2, "may_end": False, "max_steps": 2},
    "three blocks, narrow first": {
        "canvas": [0] * 5 + [61],
        "roles": bytes([0] * 5 + [2]),
        "blocks": 3,
        "may_end": False,
    },
    "blocks until an end": {**OPEN, "blocks": 3, "max_steps": 2, "seed": 5},
    "alternatives": {"alternatives": 3, "judge": Judge(JudgeKind.CONFIDENCE)},
    "unjudged": {"alternatives": 2, "judge": Judge(JudgeKind.NONE)},
    "raced widths": {
        "canvas": [0, *range(60, 75)],
        "roles": bytes([0] + [2] * 15),
        "widths": [1, 2, 5],
        "alternatives": 3,
    },
    "judged by a tail": {
        "widths": [1, 3, 6],
        "alternatives": 3,
        "judge": Judge(tail=[70, 71, 72, 73, 74]),
    },
    "judged by a tail, scored with an end": {
        "widths": [1, 3, 6],
        "alternatives": 3,
        "judge": Judge(tail=[70, 71, 72], end=1),
    },
    "judged beyond the canvas": {
        "canvas": [0] * 16,
        "roles": bytes(16),
        "widths": [12, 16],
        "alternatives": 2,
        "judge": Judge(tail=list(range(70, 90))),
        "may_end": False,
    },
    "a greedy line among them": {"widths": [2, 4], "alternatives": 3, "causal_candidate": True},
    "a greedy line that is sure": {
        "widths": [4],
        "canvas": [0],
        "roles": b"\0",
        "causal_candidate": True,
        "causal_sure": -1e9,
    },
    "a greedy line that is not sure": {
        "widths": [4],
        "causal_candidate": True,
        "causal_sure": -1e-9,
        "single_line": True,
    },
}


def solved(solver: Any, canvas_job: CanvasJob) -> list[Frame]:
    with torch.inference_mode():
        return [f for f in solver.run(canvas_job, solver.clock()) if f is not None]


def assert_same(found: list[Frame], expected: list[Frame]) -> None:
    assert [f.step for f in found] == [f.step for f in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.ids == other.ids
        assert one.widths == other.widths
        assert one.settled == other.settled
        assert one.done == other.done
        assert one.entropy == pytest.approx(other.entropy, abs=2e-3)
        assert one.scores == pytest.approx(other.scores, abs=2e-3)


@pytest.mark.parametrize("name", JOBS)
async def test_frames_are_the_torch_engines(engine: Any, solver: Any, name: str):
    canvas_job = job(id=name, **JOBS[name])
    assert_same(await frames_of(engine, canvas_job), solved(solver, canvas_job))


async def test_frames_stay_the_same_in_a_batch_of_every_phase(engine: Any, solver: Any):
    jobs = [
        job(**{"prompt": [n + 20, *range(30, 40 + 5 * n)], "seed": n, **fields, "id": name})
        for n, (name, fields) in enumerate(JOBS.items())
    ]
    together = await asyncio.gather(*(frames_of(engine, j) for j in jobs))
    for canvas_job, frames in zip(jobs, together, strict=True):
        assert_same(frames, solved(solver, canvas_job))


async def test_a_preempted_job_begins_anew_and_ends_the_same(engine: Any, solver: Any):
    slow = {
        **OPEN,
        "rule": Rule.ENTROPY_BOUND,
        "max_steps": 50,
        "confidence": 1e-9,
        "may_end": False,
        "priority": Priority.PREFETCH,
    }
    jobs = [job(id=f"slow {n}", seed=n, prompt=[*range(50 + n, 90)], **slow) for n in range(4)]
    urgent = [job(id=f"urgent {n}", seed=9, prompt=[*range(8, 40)]) for n in range(2)]
    expected = {each.id: solved(solver, each) for each in (*jobs, *urgent)}
    under_way = [asyncio.Event() for _ in jobs]

    async def frames_from(canvas_job: CanvasJob, begun: asyncio.Event) -> list[Frame]:
        frames: list[Frame] = []
        async for frame in engine.submit(canvas_job):
            frames.append(frame)
            begun.set()
        return frames

    running = [
        asyncio.create_task(frames_from(*each)) for each in zip(jobs, under_way, strict=True)
    ]
    first = engine.submit(job(id="first", **slow))  # waits: all four places are taken
    await asyncio.gather(*(begun.wait() for begun in under_way))
    for each in urgent:
        assert_same(await frames_of(engine, each), expected[each.id])
    await first.aclose()
    steps = []
    for canvas_job, task in zip(jobs, running, strict=True):
        frames = await task
        alone = expected[canvas_job.id]
        assert frames[-1].ids == alone[-1].ids
        assert_same(frames[-len(alone) :], alone)
        steps.append([f.step for f in frames])
    assert any(len(set(line)) < len(line) for line in steps), "no job was preempted"
