"""An engine that says what a script tells it to, for tests of everything around engines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from dg_engine.engine import EngineError
from dg_engine.job import (
    CanvasJob,
    Done,
    DoneKind,
    EngineInfo,
    Frame,
    Priority,
    Role,
    check_job,
)
from dg_engine.tokenizer import Tokenizer

CANVAS_LENGTH = 256
NEXT_RUN = "¦"
"""Parts an answer between the open runs of a canvas that has several."""


class ScriptedEngine:
    """Keeps the contract of `dg_engine.engine.Engine`.

    `answers` are texts for the holes, taken in turn and the last one for ever; an answer that
    starts with "!" is a script word:

    - "!wait": says nothing until it is cancelled or `release` is set, then answers as "released"
    - "!paced TEXT": waits for `release` before each draft, and takes it back
    - "!error": ends with an error
    - "!refuse": raises EngineError
    - "!crash": ends the process

    Prefetches take theirs from `ahead`.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        answers: Iterable[str],
        *,
        drafts: int = 1,
        score: float = -0.1,
        loaded: asyncio.Event | None = None,
        load_error: str = "",
        ahead: Iterable[str] = ("",),
    ) -> None:
        self._tokenizer = tokenizer
        self._answers = list(answers)
        self._ahead = list(ahead)
        self._drafts = drafts
        self._score = score
        self._loaded = loaded
        self._load_error = load_error
        self._running: dict[str, asyncio.Event] = {}
        self.release = asyncio.Event()
        self.jobs: list[CanvasJob] = []
        """All but the prefetches."""
        self.prefetches: list[CanvasJob] = []
        self.cancelled: list[str] = []
        self.closed = False
        self.on_job: Callable[[CanvasJob], None] = lambda job: None

    @property
    def running(self) -> int:
        """Jobs that have not ended."""
        return len(self._running)

    async def submit(self, job: CanvasJob) -> AsyncIterator[Frame]:
        check_job(job, canvas_length=CANVAS_LENGTH, vocab_size=self._tokenizer.vocab_size)
        prefetch = job.priority is Priority.PREFETCH
        (self.prefetches if prefetch else self.jobs).append(job)
        self.on_job(job)
        answers = self._ahead if prefetch else self._answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        stop = self._running[job.id] = asyncio.Event()
        try:
            if answer == "!crash":
                os._exit(70)
            if answer == "!refuse":
                raise EngineError("The scripted engine refuses.")
            if answer == "!error":
                yield Frame(job.id, 0, [], done=Done(DoneKind.ERROR, "The script says so."))
                return
            if answer == "!wait":
                await self._wait_for_any(stop, self.release)
                answer = "released"
            paced = answer.startswith("!paced ")
            answer = answer.removeprefix("!paced ")
            for step in range(1, self._drafts):
                if paced:
                    await self._wait_for_any(stop, self.release)
                    self.release.clear()
                yield self._frame(job, step, answer[: step * len(answer) // self._drafts], None)
            if stop.is_set():
                yield Frame(job.id, 0, [], done=Done(DoneKind.CANCELLED))
                return
            yield self._frame(job, self._drafts, answer, Done(DoneKind.CONVERGED))
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.append(job.id)
            raise
        finally:
            self._running.pop(job.id, None)

    async def cancel(self, job_id: str) -> None:
        if (stop := self._running.get(job_id)) is not None:
            stop.set()

    async def info(self) -> EngineInfo:
        if self._loaded is not None:
            await self._loaded.wait()
        if self._load_error:
            raise EngineError(self._load_error)
        return EngineInfo(
            model="scripted",
            canvas_length=CANVAS_LENGTH,
            vocab_size=self._tokenizer.vocab_size,
            tokenizer_digest=self._tokenizer.digest,
            device="none",
            dtype="none",
            parameters=0,
            causal_predicts=True,
        )

    async def close(self) -> None:
        self.closed = True
        for stop in self._running.values():
            stop.set()

    def _frame(self, job: CanvasJob, step: int, answer: str, done: Done | None) -> Frame:
        ids = self._tokenizer.encode(answer)
        first = next(i for i, role in enumerate(job.roles) if role != Role.PIN)
        behind = [i for i, role in zip(job.canvas, job.roles, strict=True) if role == Role.PIN]
        behind = behind[first:]
        if job.widths:
            row = [*job.canvas[:first], *ids, *behind][: len(job.canvas)]
        else:
            open_ids = sum(role != Role.PIN for role in job.roles)
            row = self._filled(job, answer)
        return Frame(
            job=job.id,
            step=step,
            ids=[row],
            widths=[min(len(ids), len(row)) if job.widths else open_ids],
            settled=[0],
            entropy=[0.5] * len(row),
            scores=[self._score] if done else [],
            forwards=step,
            ms={"steps": 1.0},
            done=done,
        )

    def _filled(self, job: CanvasJob, answer: str) -> list[int]:
        """The canvas with each open run filled by its part of the answer, then by end tokens."""
        end = self._tokenizer.token_id("<eos>") or 0
        parts = iter(answer.split(NEXT_RUN))
        row: list[int] = []
        rest: Iterator[int] = iter(())
        before = Role.PIN
        for token, role in zip(job.canvas, job.roles, strict=True):
            if role == Role.PIN:
                row.append(token)
            else:
                if before == Role.PIN:
                    rest = iter(self._tokenizer.encode(next(parts, "")))
                row.append(next(rest, end))
            before = Role(role)
        return row

    @staticmethod
    async def _wait_for_any(*events: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
