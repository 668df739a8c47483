"""Two holes at once against one after the other."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable

import msgspec
from dg_engine.job import CanvasJob

from dg_lsp.bench.cases import Answer, Case, Solve, Subject, ask, case_of, last_frame, shown
from dg_lsp.bench.holes import Hole
from dg_lsp.bench.outcome import Filled
from dg_lsp.filling import Filling
from dg_lsp.jobs import marks_job
from dg_lsp.lines import Lines
from dg_lsp.marks import MARK, Mark
from dg_lsp.prompts.view import place_of
from dg_lsp.results import FillRequest
from dg_lsp.runner import Runner

_numbers = itertools.count(1)


async def at_once(subject: Subject, hole: Hole) -> Filled:
    """Both on one canvas as the server fills marks together, their lengths unknown."""
    source = MARK.join((hole.prefix, hole.between, hole.suffix))
    offsets = (len(hole.prefix), len(hole.prefix) + len(MARK) + len(hole.between))
    filling = Filling(
        Runner(subject.engine, subject.tokenizer),
        subject.tokenizer,
        subject.prompts,
        lambda: f"pair-{next(_numbers)}",
        time.perf_counter,
    )
    asked = FillRequest(
        lines=Lines.of(source),
        marks=[Mark(*place_of(source, offset)) for offset in offsets],
        path=hole.path,
        language="python",
    )
    together = msgspec.structs.replace(subject.settings, marks_together=True)
    fill = await filling.run(asked, together)
    return Filled(fill.texts, fill.steps, fill.forwards, fill.ms["total"])


def at_once_known(steps: int) -> Solve:
    """Both on one canvas, each as wide as its true text."""

    async def solve(subject: Subject, hole: Hole) -> Filled:
        case = case_of(msgspec.structs.replace(hole, between=""), subject, multi_line=False)
        widths = [max(1, len(subject.prompts.encode(t))) for t in (hole.middle, hole.second)]
        between = subject.prompts.encode(hole.between)
        job = marks_job(
            hole.id,
            subject.prompts.build(case.view, subject.settings.budget),
            widths,
            [between],
            subject.prompts,
            subject.settings,
        )
        job = msgspec.structs.replace(job, max_steps=steps, may_end=False)
        frame, ms = await last_frame(subject.engine, job)
        if frame is None or not frame.ids:
            return Filled(["", ""], 0, 0, ms)
        row = frame.ids[0]
        second = widths[0] + len(between)
        parts = (row[: widths[0]], row[second : second + widths[1]])
        texts = [subject.prompts.answer(part) for part in parts]
        first, other = _cases(subject, hole, texts[0])
        return Filled(
            [shown(texts[0], first), shown(texts[1], other)], frame.step, frame.forwards, ms
        )

    return solve


def in_turn_by(build: Callable[[Case], CanvasJob]) -> Solve:
    """The first alone, what stands behind the second unseen; then the second behind its answer."""

    async def solve(subject: Subject, hole: Hole) -> Filled:
        answers: list[Answer] = []
        for index in range(2):
            text = answers[0].text if answers else ""
            case = _cases(subject, hole, text)[index]
            answers.append(await ask(subject, case, build(case)))
        both = answers[1].after(answers[0])
        return Filled([answer.text for answer in answers], both.steps, both.forwards, both.ms)

    return solve


in_turn = in_turn_by(lambda case: case.job)


async def apart(subject: Subject, hole: Hole) -> Filled:
    """Each alone, the other one unseen, both asked at once."""
    begun = time.perf_counter()
    asked = [
        (case, msgspec.structs.replace(case.job, id=f"{hole.id}-{number}"))
        for number, case in enumerate(_cases(subject, hole, ""))
    ]
    answers = await asyncio.gather(*(ask(subject, case, job) for case, job in asked))
    both = answers[1].after(answers[0])
    took = 1e3 * (time.perf_counter() - begun)
    return Filled([answer.text for answer in answers], both.steps, both.forwards, took)


def _cases(subject: Subject, hole: Hole, first: str) -> tuple[Case, Case]:
    """Each hole as a question of its own, the second one behind the text `first`."""
    one = msgspec.structs.replace(hole, suffix=hole.between, between="", second="")
    other = msgspec.structs.replace(
        one, prefix=hole.prefix + first + hole.between, middle=hole.second, suffix=hole.suffix
    )
    return case_of(one, subject, at_end=False), case_of(other, subject)
