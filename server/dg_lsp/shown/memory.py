"""Answers of the engine by what the model saw: the same prompt and canvas are not asked twice.

Held in memory alone. A key is a digest, so that no prompt is kept.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec
from dg_engine.job import CanvasJob, DoneKind, Priority

from dg_lsp.runner import Answer

MOST_ANSWERS = 256
_WHOLE = frozenset({DoneKind.CONVERGED, DoneKind.MAX_STEPS})


def key_of(job: CanvasJob) -> bytes:
    """A digest of all that decides a job's answer: not its name, its deadline or its rank."""
    bare = msgspec.structs.replace(job, id="", deadline_ms=None, priority=Priority.INTERACTIVE)
    return hashlib.blake2b(msgspec.msgpack.encode(bare), digest_size=16).digest()


class Memory:
    """The newest answers, least recently used out first, and those that are on their way."""

    def __init__(self, most: int = MOST_ANSWERS) -> None:
        self._most = most
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()
        self._awaited: dict[bytes, asyncio.Future[Answer]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def clear(self) -> None:
        """Forget everything."""
        self._answers.clear()

    async def answer(
        self, job: CanvasJob, ask: Callable[[], Awaitable[Answer]], key: bytes = b""
    ) -> Answer:
        """The answer of a job: remembered by its key, which need not be given, or by `ask`.

        A job whose noise is drawn anew each time (no seed) is always asked.
        """
        if job.seed is None:
            return await ask()
        key = key or key_of(job)
        awaited = self._awaited.get(key)
        if awaited is not None:
            # Somebody else's task: whoever waits here may go without ending it.
            await asyncio.wait([awaited])
        known = self._answers.get(key)
        if known is not None:
            self._answers.move_to_end(key)
            return known
        if job.priority is Priority.PREFETCH:
            return await self._awaitable(key, ask)
        return self._kept(key, await ask())

    async def _awaitable(self, key: bytes, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask so that a request for the same can wait for it."""
        told = self._awaited[key] = asyncio.get_running_loop().create_future()
        try:
            answer = self._kept(key, await ask())
        finally:
            del self._awaited[key]
            told.cancel()
        return answer

    def _kept(self, key: bytes, answer: Answer) -> Answer:
        if answer.frame is not None and answer.done.kind in _WHOLE:
            # What it cost was paid once.
            free = msgspec.structs.replace(answer.frame, step=0, forwards=0, ms={})
            self._answers[key] = msgspec.structs.replace(answer, frame=free)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return answer
