"""One job as requests to a CanvasBackend; what is decided here is what dg_engine.solver decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from dg_engine.answers import answer, free_count, tail_of
from dg_engine.candidates import Row, rows_of, with_hole
from dg_engine.canvas_backend import Host, score
from dg_engine.causal import Candidate, distinct
from dg_engine.engine import EngineError
from dg_engine.job import CanvasJob, Done, DoneKind, Frame, JudgeKind, Role
from dg_engine.vllm_plugin.drafts import Code, Draft
from dg_engine.vllm_plugin.request import canvas_request, greedy_request

Found = TypeVar("Found")


class Cancelled(Exception):
    """The job was cancelled."""


class _Stream:
    """The drafts of one row so far."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.drafts: list[Draft] = []

    @property
    def ended(self) -> bool:
        """Whether the last draft has come."""
        return bool(self.drafts) and self.drafts[-1].code.final

    def at(self, count: int) -> Draft:
        """The draft of that number from 1; the last one where the row had fewer."""
        return self.drafts[min(count, len(self.drafts)) - 1]

    def free_at(self, count: int) -> int:
        """Free positions of that draft; all are in the blocks behind the first."""
        draft = self.at(count)
        return len(draft.ids) if draft.block else free_count(self.row)

    def blocks(self) -> Iterator[Draft]:
        """The last draft of each block; of the present one the newest.

        A row that was preempted before its block was committed ends that block twice.
        """
        newest = self.drafts[-1]
        ended = {draft.block: draft for draft in self.drafts if draft.code.ends_block}
        yield from (ended[block] for block in range(newest.block))
        yield newest


class CanvasRun:
    """A job that is being run."""

    def __init__(self, host: Host, job: CanvasJob, seed: int) -> None:
        self._host = host
        self._job = job
        self._seed = seed
        self._deadline = (
            None if job.deadline_ms is None else host.clock() + job.deadline_ms / 1000
        )  # fmt: skip
        self._events: asyncio.Queue[tuple[_Stream, Draft] | Exception] = asyncio.Queue()
        self._cancelled = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._forwards = 0
        self._cached = 0
        self._step = 0
        self._ms: dict[str, float] = {}

    def cancel(self) -> None:
        """Let `frames` raise Cancelled at once, wherever it waits."""
        self._cancelled.set()
        self._events.put_nowait(Cancelled())

    async def stop(self) -> None:
        """Abort every request that is still running."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def frames(self) -> AsyncIterator[Frame]:
        """All frames of the job; raises Cancelled, or EngineError when the backend fails."""
        job = self._job
        greedy: asyncio.Task[Candidate] | None = None
        if job.causal_candidate and not self._late():
            greedy = self._start(self._greedy())
        if greedy is not None and job.causal_sure is not None:
            sure = await self._guarded(greedy)
            if sure is not None and sure.mean >= job.causal_sure:
                yield self._answer([sure], Done(DoneKind.CONVERGED))
                return
        streams = [_Stream(row) for row in rows_of(job, self._host.limits.canvas_length)]
        if all(stream.row.start == stream.row.stop for stream in streams):
            eos, done = self._host.sets.eos, Done(DoneKind.CONVERGED)
            candidates = [Candidate.of(s.row, s.row.given, 0.0, eos) for s in streams]
        else:
            async for frame in self._denoise(streams):
                yield frame
            done = self._done(streams)
            candidates = [self._candidate(stream) for stream in streams if stream.drafts]
        line = await self._guarded(greedy) if greedy is not None else None
        candidates += [line] if line is not None else []
        kind = job.judge.kind
        if kind is JudgeKind.CAUSAL and len(candidates) > 1 and not self._late():
            candidates = await self._guarded(self._start(self._judge(candidates)), late=True) or []
        elif kind is not JudgeKind.NONE:
            candidates = sorted(candidates, key=lambda c: -c.mean)
        yield self._answer(candidates, done)

    def _late(self) -> bool:
        return self._remaining() == 0.0

    def _remaining(self) -> float | None:
        """Seconds to the deadline, None where there is none."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - self._host.clock())

    def _start(self, work: Coroutine[Any, Any, Found]) -> asyncio.Task[Found]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, task: asyncio.Task[Found], *, late: bool = False) -> Found | None:
        """What a task finds; None when the deadline comes first, unless it may be `late`."""
        cancelled = self._start(self._cancelled.wait())
        await asyncio.wait(
            (task, cancelled),
            timeout=None if late else self._remaining(),
            return_when=asyncio.FIRST_COMPLETED,
        )
        cancelled.cancel()
        if self._cancelled.is_set():
            raise Cancelled
        if not task.done():
            task.cancel()
            return None
        return task.result()

    async def _read(self, stream: _Stream, seed: int) -> None:
        """Turn a row's drafts into events."""
        job, row = self._job, stream.row
        request = canvas_request(job, row.given, row.roles, seed)
        drafts = self._host.backend.run(
            job.prompt, request, name=self._host.name(), priority=int(job.priority)
        )
        try:
            async for draft in drafts:
                self._events.put_nowait((stream, draft))
        except EngineError as error:
            self._events.put_nowait(error)

    async def _next(self, wait: bool) -> tuple[_Stream, Draft] | None:
        """The next draft; None when the deadline comes first and there is no need to wait on."""
        try:
            async with asyncio.timeout(None if wait else self._remaining()):
                event = await self._events.get()
        except TimeoutError:
            return None
        if isinstance(event, Exception):
            raise event
        return event

    async def _denoise(self, streams: list[_Stream]) -> AsyncIterator[Frame]:
        """A frame for each step that every row has taken, but none for the last one of all."""
        begun = self._host.clock()
        readers = [
            self._start(self._read(stream, self._seed + index))
            for index, stream in enumerate(streams)
        ]
        shown = 0
        while not all(stream.ended for stream in streams):
            event = await self._next(wait=not any(stream.drafts for stream in streams))
            if event is None:
                break
            stream, draft = event
            elapsed = 1000 * (self._host.clock() - begun)
            if self._step == 0:
                self._ms["encode"] = elapsed
                self._cached = draft.cached_tokens
            self._ms["steps"] = elapsed - self._ms["encode"]
            self._forwards = max(self._forwards, draft.forwards)
            self._step = draft.step
            stream.drafts.append(draft)
            running = [len(stream.drafts) for stream in streams if not stream.ended]
            ready = min(running) if running else max(len(s.drafts) for s in streams) - 1
            for count in range(shown + 1, ready + 1):
                if not any(stream.at(count).code.ends_block for stream in streams):
                    yield self._frame(streams, count)
            shown = max(shown, ready)
            if self._late() and all(stream.drafts for stream in streams):
                break
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    def _frame(self, streams: list[_Stream], count: int) -> Frame:
        """The drafts of that number, the surest row first."""
        drafts = [stream.at(count) for stream in streams]
        free = [stream.free_at(count) for stream in streams]
        order = sorted(
            range(len(drafts)), key=lambda r: sum(drafts[r].entropy) / max(1, free[r])
        )  # fmt: skip
        return Frame(
            job=self._job.id,
            step=drafts[order[0]].step,
            ids=[drafts[r].ids for r in order],
            widths=[free[r] for r in order],
            settled=[drafts[r].settled for r in order],
            entropy=drafts[order[0]].entropy,
            forwards=self._forwards,
            cached_tokens=self._cached,
            ms=dict(self._ms),
        )

    def _done(self, streams: list[_Stream]) -> Done:
        if not all(stream.ended for stream in streams):
            return Done(DoneKind.DEADLINE)
        converged = all(stream.drafts[-1].code is Code.CONVERGED for stream in streams)
        return Done(DoneKind.CONVERGED if converged else DoneKind.MAX_STEPS)

    def _candidate(self, stream: _Stream) -> Candidate:
        """A row's last draft; a row of several blocks is the blocks behind each other."""
        row, ids, entropy, means = stream.row, list[int](), list[float](), list[float]()
        roles = row.roles
        for draft in stream.blocks():
            free = [i for i, role in enumerate(roles) if role != Role.PIN]
            means.append(sum(draft.scores[i] for i in free) / max(1, len(free)))
            ids += draft.ids
            entropy += draft.entropy
            roles = bytes([Role.HOLE]) * self._host.limits.canvas_length
        if len(ids) > len(row.given):
            roles = row.roles + bytes([Role.HOLE]) * (len(ids) - len(row.roles))
            row = Row(ids, roles, row.start, len(ids))
        candidate = Candidate.of(row, ids, sum(means) / len(means), self._host.sets.eos)
        return candidate._replace(entropy=entropy)

    async def _greedy(self) -> Candidate:
        """The causal mode's own continuation; asked again when it was preempted."""
        job, sets, begun = self._job, self._host.sets, self._host.clock()
        limit = max(job.widths, default=len(job.canvas))
        ends = sets.eos | (sets.line_breaks if job.single_line else frozenset[int]())
        code, found = Code.LOST, dict[int, Draft]()
        while code is Code.LOST:
            found.clear()
            async for draft in self._host.backend.run(
                job.prompt[:-1],
                greedy_request(job, job.prompt[-1], limit),
                name=self._host.name(),
                priority=int(job.priority),
            ):
                found[draft.block], code = draft, draft.code
        drafts = [found[place] for place in sorted(found)]
        self._forwards = max(self._forwards, drafts[-1].forwards)
        self._ms["causal"] = 1000 * (self._host.clock() - begun)
        ids = [draft.ids[0] for draft in drafts if draft.ids[0] not in ends]
        total = sum(draft.scores[0] for draft in drafts)
        row = with_hole(job, ids, Role.HOLE, self._host.limits.canvas_length)
        return Candidate(row, row.given, tuple(ids), total / (len(ids) + 1), [])

    async def _judge(self, candidates: list[Candidate]) -> list[Candidate]:
        """Best first by summed causal log-probability of text and tail; one pass over all."""
        job, begun = self._job, self._host.clock()
        tail, pool = tail_of(job), distinct(candidates)
        rows = [[*candidate.text, *tail] for candidate in pool]
        if job.judge.end is not None:
            rows += [[*candidate.text, job.judge.end] for candidate in pool]
        found = await asyncio.gather(
            *(
                score(self._host, job.prompt + row, len(job.prompt), int(job.priority))
                for row in rows
            )
        )
        self._forwards += max(forwards for _, forwards in found)
        self._ms["judge"] = 1000 * (self._host.clock() - begun)
        totals = [sum(scores) for scores, _ in found]
        means = [total / max(1, len(row)) for total, row in zip(totals, rows, strict=True)]
        order = sorted(range(len(pool)), key=lambda r: -totals[r])
        return [pool[r]._replace(mean=means[-len(pool) :][r]) for r in order]

    def _answer(self, candidates: list[Candidate], done: Done) -> Frame:
        return answer(
            self._job,
            candidates,
            done,
            step=self._step,
            forwards=self._forwards,
            cached_tokens=self._cached,
            ms=dict(self._ms),
        )
