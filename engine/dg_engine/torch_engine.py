"""Runs canvas jobs with PyTorch, most urgent first; TorchEngine does so in a thread of its own."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator

import msgspec
import torch

from dg_engine.job import CanvasJob, Done, DoneKind, EngineInfo, Frame, JobError
from dg_engine.loader import Loaded

Deliver = Callable[[Frame], None]


class _Active:
    """A job in the queue or between two of its steps."""

    def __init__(self, job: CanvasJob, order: int, deliver: Deliver, submitted: float) -> None:
        self.job = job
        self.order = order
        self.deliver = deliver
        self.submitted = submitted
        self.cancelled = False
        self.steps: Generator[Frame | None, None, None] | None = None
        self.note = ""
        """What was done differently than asked, one sentence."""

    @property
    def rank(self) -> tuple[int, int]:
        return int(self.job.priority), self.order


class Worker:
    """Owns the model. Jobs share it step by step: the most urgent one goes on.

    `deliver` is called in the working thread, once per frame and exactly once with a `done`
    frame. Work in the thread that loaded the model if you can: OpenMP keeps a pool of threads for
    each thread that computes, and two pools on two processors wait for each other (a third of the
    time of a step, measured).
    """

    def __init__(self, loaded: Loaded, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._loaded = loaded
        self._clock = clock
        self._jobs: dict[str, _Active] = {}
        self._order = itertools.count()
        self._wake = threading.Condition()
        self._closing = False

    @property
    def info(self) -> EngineInfo:
        """What is loaded."""
        return self._loaded.info

    @property
    def jobs(self) -> int:
        """Jobs queued or running."""
        with self._wake:
            return len(self._jobs)

    def submit(self, job: CanvasJob, deliver: Deliver) -> None:
        """Queue a job; an id that is still running is refused with an ERROR frame."""
        with self._wake:
            if self._closing:
                refused = Done(DoneKind.CANCELLED)
            elif job.id in self._jobs:
                refused = Done(DoneKind.ERROR, f"A job named {job.id} is running; use another id.")
            else:
                self._jobs[job.id] = _Active(job, next(self._order), deliver, self._clock())
                self._wake.notify()
                return
        deliver(Frame.end_of(job.id, refused))

    def cancel(self, job_id: str) -> None:
        """Stop a job before its next step."""
        with self._wake:
            active = self._jobs.get(job_id)
            if active is not None:
                active.cancelled = True
                self._wake.notify()

    def close(self) -> None:
        """Cancel every job; `work` returns once each was told."""
        with self._wake:
            self._closing = True
            for active in self._jobs.values():
                active.cancelled = True
            self._wake.notify()

    def _next(self) -> _Active | None:
        with self._wake:
            while not self._jobs:
                if self._closing:
                    return None
                self._wake.wait()
            # A cancelled job only has to be told so, whatever its priority.
            return min(self._jobs.values(), key=lambda a: (not a.cancelled, a.rank))

    def work(self) -> None:
        """Run jobs in this thread until `close`."""
        with torch.inference_mode():
            while (active := self._next()) is not None:
                frame = self._advance(active)
                if frame is None:
                    continue
                if frame.done is not None:
                    with self._wake:
                        del self._jobs[active.job.id]
                active.deliver(frame)

    def _advance(self, active: _Active) -> Frame | None:
        """One forward of one job."""
        if active.cancelled:
            if active.steps is not None:
                active.steps.close()
            return Frame.end_of(active.job.id, Done(DoneKind.CANCELLED))
        try:
            if active.steps is None:
                active.steps = self._loaded.solver.run(active.job, active.submitted)
            return _noted(next(active.steps), active.note)
        except JobError as error:
            return Frame.end_of(active.job.id, Done(DoneKind.ERROR, str(error)))
        except Exception as error:  # the worker must outlive any one job
            if _is_out_of_memory(error):
                return self._make_room(active)
            message = f"The engine failed on this job ({type(error).__name__}: {error})."
            return Frame.end_of(active.job.id, Done(DoneKind.ERROR, message))

    def _make_room(self, active: _Active) -> Frame | None:
        """Forget the cached prompts and begin a job anew with fewer candidates, if it has any."""
        self._loaded.solver.forget()
        smaller = fewer_candidates(active.job)
        if smaller is None:
            message = "The engine ran out of memory; use a smaller model or shorter prompts."
            return Frame.end_of(active.job.id, Done(DoneKind.ERROR, message))
        active.job, active.steps = smaller, None
        active.note = "The engine ran short of memory and tried fewer candidates."
        print(active.note, file=sys.stderr, flush=True)
        return None


def fewer_candidates(job: CanvasJob) -> CanvasJob | None:
    """A job with half the widths, or no alternatives; None for one with a single candidate."""
    if job.alternatives > 1:
        return msgspec.structs.replace(job, alternatives=1)
    if len(job.widths) > 1:
        return msgspec.structs.replace(job, widths=job.widths[1::2])
    return None


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory was refused; on a CPU PyTorch says so in words alone."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def _noted(frame: Frame | None, note: str) -> Frame | None:
    """A frame whose end, if it is one, tells the note."""
    if frame is None or frame.done is None or frame.done.message or not note:
        return frame
    done = msgspec.structs.replace(frame.done, message=note)
    return msgspec.structs.replace(frame, done=done)


class TorchEngine:
    """Engine over a Worker for asyncio callers in the same process."""

    def __init__(self, loaded: Loaded) -> None:
        self._info = loaded.info
        self._worker = Worker(loaded)
        self._thread = threading.Thread(target=self._worker.work, name="dg-engine", daemon=True)
        self._thread.start()

    async def submit(self, job: CanvasJob) -> AsyncIterator[Frame]:
        """Run a job; leaving the iterator early cancels it."""
        loop = asyncio.get_running_loop()
        frames: asyncio.Queue[Frame] = asyncio.Queue()

        def deliver(frame: Frame) -> None:
            # The loop may be gone when its program ends while a step runs.
            if not loop.is_closed():
                loop.call_soon_threadsafe(frames.put_nowait, frame)

        self._worker.submit(job, deliver)
        finished = False
        try:
            while not finished:
                frame = await frames.get()
                finished = frame.done is not None
                yield frame
        finally:
            if not finished:
                self._worker.cancel(job.id)

    async def cancel(self, job_id: str) -> None:
        """Stop a job within one denoise step."""
        self._worker.cancel(job_id)

    async def info(self) -> EngineInfo:
        """What is loaded."""
        return self._info

    async def close(self) -> None:
        """End every job with CANCELLED and stop the thread."""
        self._worker.close()
        await asyncio.to_thread(self._thread.join)
