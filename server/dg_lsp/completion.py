"""Completions and edits: from source text to a canvas job, and from its frames to new text.

The server and the command line share this; it knows no protocol and no process.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Awaitable, Callable

import msgspec
from dg_engine.engine import Engine
from dg_engine.job import CanvasJob, Frame, Priority
from dg_engine.tokenizer import Tokenizer

from dg_lsp.drafts import Draft, Piece, width_of
from dg_lsp.editing import SECRET_IN_LINES, Editing
from dg_lsp.filling import Filling
from dg_lsp.jobs import filled_in, hole_job
from dg_lsp.languages import language_of
from dg_lsp.laps import Laps
from dg_lsp.lines import Lines
from dg_lsp.privacy.views import prompt_view
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.prompts.settings import InfillSettings
from dg_lsp.prompts.view import CursorView, place_of, unix, view_at
from dg_lsp.results import (
    Completion,
    Edit,
    EditDraft,
    EditRequest,
    Explanation,
    Fill,
    FillRequest,
    OnDraft,
    OnEditDraft,
    Source,
)
from dg_lsp.runner import Answer, Runner, reason_of
from dg_lsp.scope import opens_block
from dg_lsp.shown.memory import Memory, key_of
from dg_lsp.shown.warm import warm_job
from dg_lsp.suggestion import Place, suggestion_of
from dg_lsp.syntax.window import window_of

__all__ = [
    "SECRET_IN_LINES",
    "Completer",
    "Completion",
    "Draft",
    "Edit",
    "EditDraft",
    "EditRequest",
    "Explanation",
    "Fill",
    "FillRequest",
    "Piece",
    "Source",
    "language_of",
]


ALTERNATIVE_SHARE = 0.5
"""How sure the model must be of further texts, as a share of `least_confidence`: below it, those
of dg-tiny were words without sense."""


class Completer:
    """Asks an engine for the text at a cursor or in place of lines."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        prompt_format: PromptFormat,
        settings: InfillSettings | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.prompt_format = prompt_format
        self.settings = settings or prompt_format.settings
        self._clock = clock
        self._numbers = itertools.count(1)
        self._runner = Runner(engine, tokenizer)
        self.memory = Memory()
        """What was answered already."""
        self._editing = Editing(self._runner, tokenizer, prompt_format, self._new_id, clock)
        self._filling = Filling(self._runner, tokenizer, prompt_format, self._new_id, clock)

    async def complete(
        self,
        source: Source,
        offset: int,
        *,
        multi_line: bool | None = None,
        deadline_ms: int | None = None,
        priority: Priority = Priority.INTERACTIVE,
        on_draft: OnDraft | None = None,
        job_id: str | None = None,
        alternatives: int = 1,
    ) -> Completion:
        """Fill the hole at `offset` code points; `multi_line` None decides by the code around."""
        return await self.complete_at(
            _view_of(source, offset),
            multi_line=multi_line,
            deadline_ms=deadline_ms,
            priority=priority,
            on_draft=on_draft,
            job_id=job_id,
            alternatives=alternatives,
        )

    async def complete_at(
        self,
        view: CursorView,
        *,
        multi_line: bool | None = None,
        deadline_ms: int | None = None,
        priority: Priority = Priority.INTERACTIVE,
        on_draft: OnDraft | None = None,
        job_id: str | None = None,
        alternatives: int = 1,
        before_engine: Callable[[], Awaitable[None]] | None = None,
        goes_on: str = "",
    ) -> Completion:
        """As `complete`, for a view that is already cut out of a document.

        `before_engine` is awaited when the engine has to be asked, because no answer to the same
        prompt and canvas is remembered. `goes_on` is what an earlier answer says for this place;
        the job starts from it.
        """
        watch = Laps(self._clock)
        blocks = opens_block(view) if multi_line is None else multi_line
        spent = self.prompt_format.encode_ms
        shown, is_masked = prompt_view(view, self.settings.budget)
        job = self._hole(shown, blocks, alternatives, job_id, deadline_ms, priority)
        place = Place(view=view, multi_line=blocks, masked=is_masked)
        seen = asked = key_of(job)
        if goes_on:
            job = warm_job(job, self.prompt_format.encode(unix(goes_on)))
            asked = key_of(job)
        watch.lap_prompt(self.prompt_format.encode_ms - spent)

        async def ask() -> Answer:
            if before_engine is not None:
                await before_engine()
                watch.lap("wait")
            # What the filters need of the code around the cursor is read while the engine works.
            reading = asyncio.get_running_loop().call_soon(_read_around, place)
            try:
                return await self._runner.run(job, on_draft)
            finally:
                reading.cancel()

        answer = await self.memory.answer(job, ask, asked)
        watch.skip()
        rows = range(len(answer.frame.ids)) if answer.frame else range(0)
        # Several rows may come to the same text.
        looked_at = rows[: 1 if alternatives == 1 else 2 * alternatives]
        texts = [self._text(job, answer.frame, row) for row in looked_at]
        offers = [suggestion_of(text, place) for text in texts]
        likely = [row for row in looked_at if row == 0 or self._is_likely(answer.frame, row)]
        found = _distinct([offers[row].text for row in likely])
        found = found or _distinct([offer.text for offer in offers])
        first = found[0] if found else ""
        watch.lap("suggest")
        return Completion(
            insert=first,
            done=answer.done.kind,
            steps=answer.frame.step if answer.frame else 0,
            forwards=answer.frame.forwards if answer.frame else 0,
            confidence=_confidence(answer.frame),
            ms=watch.stages(answer.frame),
            reason="" if first else reason_of(answer, offers[0].reason if offers else ""),
            alternatives=found[1:alternatives],
            seen=seen,
        )

    def key_at(self, view: CursorView, *, alternatives: int = 1) -> bytes:
        """The key of what the model would see at a view (`Completion.seen`)."""
        shown, _ = prompt_view(view, self.settings.budget)
        return key_of(self._hole(shown, opens_block(view), alternatives))

    async def edit(
        self,
        source: Source,
        first_line: int,
        last_line: int,
        instruction: str,
        *,
        on_draft: OnEditDraft | None = None,
        deadline_ms: int | None = None,
    ) -> Edit:
        """Change lines `first_line` to `last_line` (from 1, both included) as told."""
        asked = EditRequest(
            lines=Lines.of(source.text),
            first=first_line - 1,
            last=last_line - 1,
            instruction=instruction,
            path=source.path,
            language=source.language,
        )
        return await self.edit_lines(asked, on_draft=on_draft, deadline_ms=deadline_ms)

    async def edit_lines(
        self,
        asked: EditRequest,
        *,
        on_draft: OnEditDraft | None = None,
        deadline_ms: int | None = None,
    ) -> Edit:
        """As `edit`, for lines of a document."""
        return await self._editing.run(
            asked, self.settings, on_draft=on_draft, deadline_ms=deadline_ms
        )

    async def fill_marks(self, asked: FillRequest, *, deadline_ms: int | None = None) -> Fill:
        """Fill marks, several on one canvas where they fit."""
        return await self._filling.run(asked, self.settings, deadline_ms=deadline_ms)

    async def ask(self, job: CanvasJob) -> Answer:
        """The engine's answer to a job that was made elsewhere, under a name of ours."""
        return await self._runner.run(msgspec.structs.replace(job, id=self._new_id()))

    def explain(
        self, source: Source, offset: int, *, multi_line: bool | None = None
    ) -> Explanation:
        """The job that `complete` would send."""
        view = _view_of(source, offset)
        blocks = opens_block(view) if multi_line is None else multi_line
        shown, _ = prompt_view(view, self.settings.budget)
        prompt = self.prompt_format.build(shown, self.settings.budget)
        job = hole_job("explain", prompt, self.prompt_format, self.settings, multi_line=blocks)
        return Explanation(job=job, sections=prompt.sections, multi_line=blocks)

    def _hole(
        self,
        shown: CursorView,
        blocks: bool,
        alternatives: int = 1,
        job_id: str | None = None,
        deadline_ms: int | None = None,
        priority: Priority = Priority.INTERACTIVE,
    ) -> CanvasJob:
        return hole_job(
            job_id or self._new_id(),
            self.prompt_format.build(shown, self.settings.budget),
            self.prompt_format,
            self.settings,
            multi_line=blocks,
            deadline_ms=deadline_ms,
            priority=priority,
            alternatives=alternatives,
        )

    def _text(self, job: CanvasJob, frame: Frame | None, row: int) -> str:
        if frame is None:
            return ""
        return self.prompt_format.answer(filled_in(job, frame.ids[row], width_of(frame, row)))

    def _is_likely(self, frame: Frame | None, row: int) -> bool:
        """Whether an alternative is worth reading, as far as the engine tells."""
        if frame is None or len(frame.scores) <= row or math.isnan(frame.scores[row]):
            return True
        return math.exp(frame.scores[row]) >= ALTERNATIVE_SHARE * self.settings.least_confidence

    def _new_id(self) -> str:
        return f"job-{next(self._numbers)}"


def _view_of(source: Source, offset: int) -> CursorView:
    line, column = place_of(source.text, offset)
    return view_at(
        Lines.of(source.text),
        line,
        column,
        path=source.path,
        language=source.language,
        context=source.context,
    )


def _read_around(place: Place) -> None:
    """Have what the filters need of a place, whatever is proposed there, read and remembered."""
    window = window_of(place.view)
    if window is not None:
        window.bar  # noqa: B018 - remembered
    place.balance_with("")


def _distinct(texts: list[str]) -> list[str]:
    """Texts that are not empty and differ in more than white space, in their order."""
    found: dict[str, str] = {}
    for text in texts:
        if text:
            found.setdefault("".join(text.split()), text)
    return list(found.values())


def _confidence(frame: Frame | None) -> float:
    if frame is None or not frame.scores or math.isnan(frame.scores[0]):
        return 0.0
    return min(math.exp(frame.scores[0]), 1.0)
