"""A hole as one model sees it, and the model's answer to a job that fills it."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec
from dg_engine.engine import Engine, EngineError
from dg_engine.job import CanvasJob, DoneKind, Frame
from dg_engine.tokenizer import Tokenizer

from dg_lsp.bench.holes import Hole
from dg_lsp.bench.outcome import Filled
from dg_lsp.jobs import filled_in, hole_job
from dg_lsp.lines import Lines
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.prompts.settings import InfillSettings
from dg_lsp.prompts.view import CursorView, view_at
from dg_lsp.restraint import confidence_wanted
from dg_lsp.scope import opens_block
from dg_lsp.suggestion import Place, suggestion_of

OPEN_LINE = "open-line"
"""A kind of hole that is one line with its line break in front: short, and yet not single-line."""
_LEAST = 1e-9
"""Confidence that any answer has."""
_CASES = 16
_BLOCKS = frozenset({"lines", "span", "block"})


class Subject(NamedTuple):
    """A model under test, with what it needs to be asked."""

    engine: Engine
    tokenizer: Tokenizer
    prompts: PromptFormat
    settings: InfillSettings
    canvas_length: int
    cases: dict[tuple[Hole, bool | None, bool | None], Case]
    """The last few cases: many methods ask about one hole."""


class Case(NamedTuple):
    """A hole as a model sees it."""

    hole: Hole
    view: CursorView
    job: CanvasJob
    """The server's own job, the start of every method."""
    middle: list[int]
    """Token ids of the true text."""
    suffix: list[int]
    """Token ids behind the hole."""
    multi_line: bool
    is_short: bool
    """Whether the hole is looked for among the lengths of one line."""
    canvas_length: int
    """Positions of the model's canvas at most."""


class Answer(NamedTuple):
    """What came of one job, or of several that belong together."""

    text: str
    steps: int
    forwards: int
    ms: float
    """Milliseconds, the way to the engine process and back included."""
    score: float = 0.0
    """Mean log-probability per judged token."""
    width: int = 0
    """Positions of the winning hole."""

    def after(self, earlier: Answer) -> Answer:
        """This answer, charged with the work of an earlier job too."""
        return self._replace(
            steps=earlier.steps + self.steps,
            forwards=earlier.forwards + self.forwards,
            ms=earlier.ms + self.ms,
        )


Solve = Callable[[Subject, Hole], Awaitable[Filled | None]]
"""Fill a hole; None where the method does not fit it. Raises EngineError."""


def case_of(
    hole: Hole, subject: Subject, *, at_end: bool | None = None, multi_line: bool | None = None
) -> Case:
    """Put the cursor into the first hole and build what the server would send.

    `at_end` False says that the file goes on behind the suffix; `multi_line` None goes by the
    kind of hole, as the server goes by what is asked.
    """
    key = (hole, at_end, multi_line)
    if key not in subject.cases:
        if len(subject.cases) >= _CASES:
            subject.cases.clear()
        subject.cases[key] = _case(hole, subject, at_end, multi_line)
    return subject.cases[key]


async def last_frame(engine: Engine, job: CanvasJob) -> tuple[Frame | None, float]:
    """The frame that ends a job, and its milliseconds; raises EngineError."""
    began = time.perf_counter()
    last: Frame | None = None
    async for frame in engine.submit(job):
        last = frame
        if frame.done is not None and frame.done.kind is DoneKind.ERROR:
            raise EngineError(frame.done.message or "The engine failed.")
    return last, 1000 * (time.perf_counter() - began)


async def ask(subject: Subject, case: Case, job: CanvasJob) -> Answer:
    """Solve one job of a case as the server would show it; raises EngineError."""
    last, ms = await last_frame(subject.engine, job)
    if last is None or not last.ids:
        return Answer("", 0, last.forwards if last else 0, ms)
    raw = subject.prompts.answer(filled_in(job, last.ids[0], last.widths[0]))
    # Where a place asks for more than any setting, as the server does unasked.
    is_sure = not last.scores or math.exp(last.scores[0]) >= confidence_wanted(_LEAST, case.view)
    return Answer(
        shown(raw, case) if is_sure else "",
        last.step,
        last.forwards,
        ms,
        last.scores[0] if last.scores else 0.0,
        last.widths[0],
    )


def filled(subject: Subject, answer: Answer) -> Filled:
    """The answer for a question of one hole."""
    return Filled(
        [answer.text],
        answer.steps,
        answer.forwards,
        answer.ms,
        answer.score,
        len(subject.prompts.encode(answer.text)),
    )


def shown(raw: str, case: Case) -> str:
    """What the server would show of an answer.

    It cuts white space at the end; where the line goes on behind the hole that is given back,
    since there it may be needed.
    """
    text = suggestion_of(raw, Place(view=case.view, multi_line=case.multi_line)).text
    if not case.hole.ends_its_line and text and raw.rstrip() == text.rstrip():
        return raw
    return text


def _case(hole: Hole, subject: Subject, at_end: bool | None, multi_line: bool | None) -> Case:
    text = hole.prefix + hole.following
    line = hole.prefix.count("\n")
    column = len(hole.prefix) - (hole.prefix.rfind("\n") + 1)
    view = view_at(Lines.of(text), line, column, path=hole.path, language="python")
    if at_end is not None:
        view = msgspec.structs.replace(view, at_end=at_end)
    is_open_line = hole.kind == OPEN_LINE
    if multi_line is None:
        multi_line = (
            is_open_line
            or hole.kind in _BLOCKS
            or (hole.kind == "quiet" and opens_block(view))
            or "\n" in hole.middle
        )
    settings = subject.settings
    if is_open_line:
        settings = msgspec.structs.replace(settings, block=settings.line)
    prompt = subject.prompts.build(view, settings.budget)
    return Case(
        hole,
        view,
        hole_job(hole.id, prompt, subject.prompts, settings, multi_line=multi_line),
        subject.prompts.encode(hole.middle),
        prompt.suffix,
        multi_line,
        is_open_line or not multi_line,
        subject.canvas_length,
    )
