"""HumanEval-Infilling (arXiv 2207.14255): holes in programs that come with tests.

The data is the user's: one JSON object a line with task_id, entry_point, prompt, suffix,
canonical_solution and test. Whole lines are asked for at the end of the line before them, so that
the indentation is for the model to find; the answer then begins with a line break.
"""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dg_lsp.bench.cases import OPEN_LINE
from dg_lsp.bench.drive import sampled
from dg_lsp.bench.holes import Hole
from dg_lsp.bench.outcome import Outcome
from dg_lsp.bench.sandbox import Sandbox

FILES = {
    "single": "HumanEval-SingleLineInfilling.jsonl.gz",
    "multi": "HumanEval-MultiLineInfilling.jsonl.gz",
    "span": "HumanEval-RandomSpanInfilling.jsonl.gz",
}
KINDS = {"single": OPEN_LINE, "multi": "block", "span": "span"}
"""What kind of hole each is here."""


class _Record(msgspec.Struct, frozen=True):
    task_id: str
    entry_point: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str


class Task(msgspec.Struct, frozen=True):
    """A hole, and what tells whether it was filled well."""

    hole: Hole
    test: str
    entry_point: str

    def program(self, text: str) -> str:
        """The program with `text` in the hole, and its tests behind it."""
        hole = self.hole
        if hole.kind == OPEN_LINE:
            text = "\n".join(text.split("\n")[:2])
        whole = hole.prefix + text + hole.suffix
        return f"{whole}\n{self.test}\ncheck({self.entry_point})\n"


def read_tasks(
    folder: Path, kinds: Sequence[str], limit: int | None = None, seed: int = 0
) -> list[Task]:
    """Tasks of some kinds, at most `limit` of each; raises OSError and ValueError."""
    tasks: dict[str, Task] = {}
    for kind in kinds:
        path = folder / FILES[kind]
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = msgspec.json.decode(line, type=_Record)
                except msgspec.MsgspecError as error:
                    raise ValueError(f"{path}:{number}: {error}.") from error
                tasks[record.task_id] = task_of(record, KINDS[kind])
    drawn = sampled([task.hole for task in tasks.values()], limit, seed)
    return [tasks[hole.id] for hole in drawn]


def task_of(record: _Record, kind: str) -> Task:
    """A record as a hole; whole lines start at the end of the line before them."""
    prefix, middle, suffix = record.prompt, record.canonical_solution, record.suffix
    if prefix.endswith("\n") and middle.endswith("\n"):
        prefix, middle, suffix = prefix[:-1], "\n" + middle[:-1], "\n" + suffix
    hole = Hole(record.task_id, prefix, middle, suffix, "program.py", kind)
    return Task(hole, record.test, record.entry_point)


class Judge:
    """Runs the programs that the answers make."""

    def __init__(self, tasks: Sequence[Task], sandbox: Sandbox | None = None) -> None:
        """Prepare; raises SandboxError where no program can be run."""
        self._tasks = {task.hole.id: task for task in tasks}
        self.sandbox = sandbox or Sandbox()
        self._free = asyncio.Semaphore(max(1, os.cpu_count() or 1))

    async def __call__(self, hole: Hole, outcome: Outcome) -> Outcome:
        """The outcome with its verdict."""
        program = self._tasks[hole.id].program(outcome.text)
        async with self._free:
            passed = await self.sandbox.passes(program)
        return msgspec.structs.replace(outcome, passed=passed)
