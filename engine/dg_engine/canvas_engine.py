"""The engine contract over a CanvasBackend.

A job becomes one canvas request per row, all over the same cached prompt; its judge one score
request per candidate, read in one causal pass; its greedy line one request more.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import AsyncIterator, Callable

from dg_engine.canvas_backend import CanvasBackend, Host, Limits, score
from dg_engine.canvas_run import Cancelled, CanvasRun
from dg_engine.engine import EngineError
from dg_engine.job import (
    CanvasJob,
    Done,
    DoneKind,
    Frame,
    JobError,
    JudgeKind,
    Priority,
    check_job,
)
from dg_engine.loader import PROBE
from dg_engine.tokenizer import Tokenizer
from dg_engine.vllm_plugin.request import MAX_STABILITY
from dg_engine.vllm_plugin.vocabulary import VocabularySets


class CanvasEngine:
    """Runs jobs; subclasses start and close the backend and say what is loaded."""

    def __init__(
        self,
        backend: CanvasBackend,
        limits: Limits,
        sets: VocabularySets,
        *,
        clock: Callable[[], float] = time.monotonic,
        fresh_seed: Callable[[], int] = lambda: int.from_bytes(os.urandom(6)),
    ) -> None:
        names = map("dg-{}-{}".format, itertools.repeat(os.getpid()), itertools.count())
        self.host = Host(backend, limits, sets, clock, lambda: next(names))
        self._fresh_seed = fresh_seed
        self._runs: dict[str, CanvasRun] = {}
        self._closing = False

    @property
    def jobs(self) -> int:
        """Jobs that have not ended."""
        return len(self._runs)

    async def submit(self, job: CanvasJob) -> AsyncIterator[Frame]:
        """Run a job; leaving the iterator early cancels it."""
        refused = self._refused(job)
        if refused is not None:
            yield Frame.end_of(job.id, refused)
            return
        seed = self._fresh_seed() if job.seed is None else job.seed
        run = self._runs[job.id] = CanvasRun(self.host, job, seed)
        try:
            async for frame in run.frames():
                yield frame
        except Cancelled:
            yield Frame.end_of(job.id, Done(DoneKind.CANCELLED))
        except EngineError as error:
            yield Frame.end_of(job.id, Done(DoneKind.ERROR, str(error)))
        finally:
            del self._runs[job.id]
            await run.stop()

    async def causal_predicts(self, tokenizer: Tokenizer) -> bool:
        """Whether the causal mode predicts ordinary code a nat better than chance."""
        limits = self.host.limits
        ids = tokenizer.encode(PROBE)[: limits.max_tokens - limits.canvas_length]
        scores, _ = await score(self.host, ids, 2, int(Priority.INTERACTIVE))
        return math.log(limits.vocab_size) + sum(scores) / len(scores) > 1.0

    def _refused(self, job: CanvasJob) -> Done | None:
        if self._closing:
            return Done(DoneKind.CANCELLED)
        if job.id in self._runs:
            return Done(DoneKind.ERROR, f"A job named {job.id} is running; use another id.")
        try:
            self._check(job)
        except JobError as error:
            return Done(DoneKind.ERROR, str(error))
        return None

    def _check(self, job: CanvasJob) -> None:
        limits = self.host.limits
        check_job(job, canvas_length=limits.canvas_length, vocab_size=limits.vocab_size)
        room = limits.max_tokens - job.blocks * limits.canvas_length
        if len(job.prompt) > room:
            raise JobError(
                f"The prompt has {len(job.prompt)} tokens; this engine takes {room} in front of "
                f"{job.blocks} canvas(es)."
            )
        if not 0 <= job.stability <= MAX_STABILITY:
            raise JobError(f"stability is {job.stability}; this engine takes 0 to {MAX_STABILITY}.")
        judged = job.judge.kind is JudgeKind.CAUSAL and len(job.widths) + job.alternatives > 1
        if len(job.prompt) < 2 and (judged or job.causal_candidate):
            raise JobError("The causal mode needs a prompt of two tokens; send one more.")

    async def cancel(self, job_id: str) -> None:
        """Stop a job within one denoise step."""
        run = self._runs.get(job_id)
        if run is not None:
            run.cancel()

    async def close(self) -> None:
        """End every job with CANCELLED."""
        self._closing = True
        for run in list(self._runs.values()):
            run.cancel()
            await run.stop()
