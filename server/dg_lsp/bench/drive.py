"""Puts holes to engines side by side, and keeps every outcome so that a run can go on."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
from dg_engine.client import EngineClient
from dg_engine.tokenizer import Tokenizer

from dg_lsp.bench.cases import Subject, ask, case_of
from dg_lsp.bench.holes import Hole
from dg_lsp.bench.methods import METHODS, known_length
from dg_lsp.bench.outcome import Filled, Outcome, outcome_of
from dg_lsp.prompts import prompt_format_for

Judged = Callable[[Hole, Outcome], Awaitable[Outcome]]
"""Adds to an outcome what only its caller can tell, such as whether a program passes."""

_TAIL_BYTES = 1 << 20


class Plan(msgspec.Struct, frozen=True):
    """What is measured, and on how many engines."""

    model: Path
    holes: list[Hole]
    methods: list[str]
    twin: Path | None = None
    threads: int | None = None
    processes: int = 1
    seed: int | None = None
    """Noise seed in place of the settings' own."""
    cache: Path | None = None
    """A file of outcomes that are not computed again; new ones are added to it."""


class Cached(msgspec.Struct, frozen=True):
    """A line of the cache; no outcome where the method does not fit the hole."""

    key: str
    outcome: Outcome | None
    method: str = ""
    """For people: the key alone says what is known."""


Results = dict[str, list[Outcome]]


async def drive(
    plan: Plan,
    judged: Judged | None = None,
    after_each: Callable[[int], None] = lambda number: None,
) -> Results:
    """Every hole by every method that fits it; raises EngineError, OSError and ValueError."""
    try:
        return await _Drive(plan, judged, after_each).run()
    except ExceptionGroup as group:
        # The engines fail for themselves; one sentence is enough.
        raise _first(group) from None


class _Drive:
    def __init__(self, plan: Plan, judged: Judged | None, after_each: Callable[[int], None]):
        self.plan = plan
        self.judged = judged
        self.after_each = after_each
        self.known = _read(plan.cache)
        self.prints = {
            False: fingerprint(plan.model),
            True: fingerprint(plan.twin) if plan.twin else "",
        }
        self.found: dict[tuple[str, int], Outcome | None] = {}
        self.waiting = deque(enumerate(plan.holes))
        self.finished = 0

    async def run(self) -> Results:
        plan = self.plan
        with contextlib.ExitStack() as stack:
            self.out = stack.enter_context(plan.cache.open("ab")) if plan.cache else None
            count = min(plan.processes, max(1, len(plan.holes)))
            async with asyncio.TaskGroup() as tasks:
                for _ in range(count):
                    tasks.create_task(self._work())
        return {
            name: [
                outcome
                for index in range(len(plan.holes))
                if (outcome := self.found.get((name, index))) is not None
            ]
            for name in plan.methods
        }

    async def _work(self) -> None:
        """One engine, and one more for the twin where it is asked."""
        async with contextlib.AsyncExitStack() as stack:
            subjects: dict[bool, Subject] = {}
            while self.waiting:
                index, hole = self.waiting.popleft()
                await self._hole(index, hole, subjects, stack)
                self.finished += 1
                self.after_each(self.finished)

    async def _hole(
        self,
        index: int,
        hole: Hole,
        subjects: dict[bool, Subject],
        stack: contextlib.AsyncExitStack,
    ) -> None:
        warmed: set[bool] = set()
        for name in self.plan.methods:
            method = METHODS[name]
            if not method.fits(hole.kind):
                continue
            by_twin = method.by_twin
            if by_twin not in subjects:
                folder = self.plan.twin if by_twin and self.plan.twin else self.plan.model
                subjects[by_twin] = await stack.enter_async_context(
                    opened(folder, self.plan.threads, self.plan.seed)
                )
            subject = subjects[by_twin]
            key = self._key(name, hole, subject, by_twin)
            if key not in self.known:
                if by_twin not in warmed:
                    # The first job of a hole pays for its prompt; no method is charged for it.
                    warmed.add(by_twin)
                    case = case_of(hole, subject)
                    await ask(subject, case, known_length(1)(case))
                filled = await method.solve(subject, hole)
                self._keep(Cached(key, await self._outcome(hole, filled), name))
            self.found[name, index] = self.known[key]

    async def _outcome(self, hole: Hole, filled: Filled | None) -> Outcome | None:
        if filled is None:
            return None
        outcome = outcome_of(hole, filled)
        return await self.judged(hole, outcome) if self.judged else outcome

    def _key(self, name: str, hole: Hole, subject: Subject, by_twin: bool) -> str:
        """Hashes what an outcome depends on; the server's own job tells how prompts are made."""
        job = case_of(hole, subject).job
        known = (self.prints[by_twin], name, hole, subject.settings, job)
        return hashlib.sha256(msgspec.json.encode(known)).hexdigest()[:24]

    def _keep(self, cached: Cached) -> None:
        self.known[cached.key] = cached.outcome
        if self.out is not None:
            self.out.write(msgspec.json.encode(cached) + b"\n")
            self.out.flush()


@contextlib.asynccontextmanager
async def opened(
    folder: Path, threads: int | None = None, seed: int | None = None
) -> AsyncGenerator[Subject]:
    """A model in an engine process of its own; raises EngineError."""
    tokenizer = Tokenizer(folder)
    prompts = prompt_format_for(tokenizer, folder)
    client = EngineClient(folder, threads=threads)
    try:
        await client.start()
        info = await client.info()
        settings = prompts.settings.within(info.canvas_length)
        if seed is not None:
            settings = msgspec.structs.replace(settings, seed=seed)
        yield Subject(client, tokenizer, prompts, settings, info.canvas_length, {})
    finally:
        await client.close()


def fingerprint(folder: Path) -> str:
    """What tells one checkpoint from another: its small files, and the weights' sizes and ends."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix not in {".json", ".safetensors"}:
            continue
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_TAIL_BYTES))
            file.seek(max(0, size - _TAIL_BYTES))
            digest.update(file.read())
    return digest.hexdigest()


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    """The first error in a group of groups."""
    leaves = group.subgroup(lambda error: not isinstance(error, BaseExceptionGroup))
    first = (leaves or group).exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _read(path: Path | None) -> dict[str, Outcome | None]:
    """What a cache holds; a last line that was cut off by an interruption does not count."""
    known: dict[str, Outcome | None] = {}
    if path is None or not path.exists():
        return known
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(filter(None, lines), 1):
        try:
            cached = msgspec.json.decode(line, type=Cached)
        except msgspec.MsgspecError as error:
            if line == lines[-1]:
                path.write_bytes(b"\n".join([*lines[:-1], b""]))
                break
            raise ValueError(f"{path}:{number}: {error}; delete the cache.") from error
        known[cached.key] = cached.outcome
    return known


def sampled(holes: Sequence[Hole], limit: int | None, seed: int) -> list[Hole]:
    """At most `limit` holes of each kind, drawn with a fixed seed, in their order."""
    chosen: list[Hole] = []
    for kind in dict.fromkeys(hole.kind for hole in holes):
        of_kind = [hole for hole in holes if hole.kind == kind]
        if limit is not None and limit < len(of_kind):
            indices = random.Random(f"{seed}:{kind}").sample(range(len(of_kind)), limit)
            of_kind = [of_kind[index] for index in sorted(indices)]
        chosen += of_kind
    return chosen
