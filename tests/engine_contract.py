"""What every engine keeps; each implementation runs all of it (see test_engines.py)."""

from __future__ import annotations

import asyncio

import pytest
from dg_engine.engine import Engine
from dg_engine.job import DoneKind, Frame, Priority, Role, Rule

from tests.engine_fixtures import job

LONG = {
    "canvas": [0] * 16,
    "roles": bytes(16),
    "rule": Rule.ENTROPY_BOUND,
    "max_steps": 100_000,
    "confidence": 1e-9,
    "may_end": False,
}
"""A job that does not end by itself within any test."""


async def frames_of(engine: Engine, canvas_job) -> list[Frame]:
    """Every frame of a job."""
    return [frame async for frame in engine.submit(canvas_job)]


class EngineContract:
    """Inherit and give an `engine` fixture."""

    async def test_it_says_what_it_runs(self, engine: Engine):
        info = await engine.info()
        assert info.canvas_length == 16
        assert info.vocab_size == 300
        assert len(info.tokenizer_digest) == 64
        assert info.parameters > 10_000
        assert info.causal_predicts is False  # the weights are random

    async def test_a_job_ends_with_exactly_one_done_frame(self, engine: Engine):
        frames = await frames_of(engine, job())
        assert [f.done is not None for f in frames[:-1]] == [False] * (len(frames) - 1)
        assert frames[-1].done is not None
        assert frames[-1].done.kind is DoneKind.MAX_STEPS
        assert frames[-1].ids[0][8:] == list(range(60, 68))

    async def test_the_answer_is_the_same_wherever_it_is_solved(self, engine: Engine):
        one = (await frames_of(engine, job(id="one")))[-1]
        two = (await frames_of(engine, job(id="two")))[-1]
        assert one.ids == two.ids

    async def test_many_jobs_at_once_each_get_their_own_answer(self, engine: Engine):
        jobs = [job(id=str(n), prompt=[n + 20, *range(30, 40)], seed=n) for n in range(12)]
        together = await asyncio.gather(*(frames_of(engine, j) for j in jobs))
        for canvas_job, frames in zip(jobs, together, strict=True):
            assert {f.job for f in frames} == {canvas_job.id}
            alone = await frames_of(engine, canvas_job)
            assert alone[-1].ids == frames[-1].ids

    async def test_a_cancelled_job_ends_at_once_with_cancelled(self, engine: Engine):
        frames: list[Frame] = []
        async for frame in engine.submit(job(**LONG)):
            frames.append(frame)
            if len(frames) == 2:
                await engine.cancel("a")
        assert frames[-1].done is not None
        assert frames[-1].done.kind is DoneKind.CANCELLED
        assert frames[-1] is not frames[1]

    async def test_leaving_the_iterator_frees_the_engine(self, engine: Engine):
        stream = engine.submit(job(**LONG))
        await anext(stream)
        await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
        frames = await asyncio.wait_for(frames_of(engine, job(id="next")), 20)
        assert frames[-1].done is not None

    async def test_cancelling_an_unknown_job_is_no_error(self, engine: Engine):
        await engine.cancel("never seen")

    async def test_an_urgent_job_overtakes_one_that_runs(self, engine: Engine):
        slow = engine.submit(job(id="slow", priority=Priority.PREFETCH, **LONG))
        await anext(slow)
        urgent = await asyncio.wait_for(frames_of(engine, job(id="urgent")), 20)
        assert urgent[-1].done is not None
        assert urgent[-1].done.kind is DoneKind.MAX_STEPS
        await slow.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    async def test_a_bad_job_gets_one_sentence_and_the_engine_lives(self, engine: Engine):
        frames = await frames_of(engine, job(roles=bytes([Role.HOLE])))
        assert len(frames) == 1
        assert frames[0].done is not None
        assert frames[0].done.kind is DoneKind.ERROR
        assert "one per id" in frames[0].done.message
        assert (await frames_of(engine, job()))[-1].ids

    async def test_closing_ends_a_running_job_with_cancelled(self, engine: Engine):
        stream = engine.submit(job(**LONG))
        await anext(stream)
        rest = asyncio.create_task(_rest(stream))
        await asyncio.wait_for(engine.close(), 10)
        last = (await asyncio.wait_for(rest, 10))[-1]
        assert last.done is not None
        assert last.done.kind is DoneKind.CANCELLED


async def _rest(stream) -> list[Frame]:
    return [frame async for frame in stream]


contract = pytest.mark.asyncio(loop_scope="function")
