"""Running one job: its drafts, its deadline and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import msgspec
from dg_engine.engine import Engine, EngineError
from dg_engine.job import CanvasJob, Done, DoneKind, Frame, JobError
from dg_engine.tokenizer import Tokenizer

from dg_lsp.drafts import draft_of
from dg_lsp.results import OnDraft

logger = logging.getLogger(__name__)

GRACE_MS = 250
"""How long past its deadline an engine may take before the last draft seen is the answer."""


class Answer(msgspec.Struct, frozen=True):
    """The last frame of a job that had drafts, and how the job ended."""

    frame: Frame | None
    done: Done


def reason_of(answer: Answer | None, otherwise: str) -> str:
    """Why there is nothing to offer, in one sentence."""
    if answer is not None and answer.done.kind is DoneKind.ERROR:
        return answer.done.message or "The engine failed."
    if answer is not None and answer.done.kind is DoneKind.CANCELLED:
        return "The request was cancelled."
    if answer is None or (answer.done.kind is DoneKind.DEADLINE and answer.frame is None):
        return "No draft was ready within the deadline."
    return otherwise or "The model proposed nothing here."


class Runner:
    """Runs jobs on an engine; a job whose caller goes away is cancelled."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._cancels: set[asyncio.Task[None]] = set()

    async def run(
        self,
        job: CanvasJob,
        on_draft: OnDraft | None = None,
        *,
        on_frame: Callable[[Frame], None] | None = None,
    ) -> Answer:
        """Run a job to its end, or cancel it when this task is cancelled or time is up.

        `on_frame` hears of every frame that has a draft, `on_draft` gets it as text.
        """
        best: Frame | None = None
        limit = None if job.deadline_ms is None else (job.deadline_ms + GRACE_MS) / 1e3
        done: Done | None = None
        try:
            async with asyncio.timeout(limit):
                frames: AsyncIterator[Frame] = self._engine.submit(job)
                async for frame in frames:
                    best = frame if frame.ids else best
                    if on_frame and frame.ids:
                        on_frame(frame)
                    if on_draft and frame.ids:
                        on_draft(draft_of(job, frame, self._tokenizer))
                    if frame.done:
                        done = frame.done
                        if done.message:
                            logger.warning("%s", done.message)
        except TimeoutError:
            return Answer(best, Done(DoneKind.DEADLINE))
        except (EngineError, JobError) as error:
            done = Done(DoneKind.ERROR, str(error))
        finally:
            if done is None:
                self._cancel_soon(job.id)
        return Answer(best, done or Done(DoneKind.ERROR, "The engine ended without an answer."))

    def _cancel_soon(self, job_id: str) -> None:
        # Not awaited: whoever was cancelled must be answered at once.
        task = asyncio.ensure_future(_cancel(self._engine, job_id))
        self._cancels.add(task)
        task.add_done_callback(self._cancels.discard)


async def _cancel(engine: Engine, job_id: str) -> None:
    try:
        await engine.cancel(job_id)
    except EngineError:
        return  # an engine that is gone runs no job
