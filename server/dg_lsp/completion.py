"""Completions and edits: from source text to a canvas job, and from its frames to new text.

The server and the command line share this; it knows no protocol and no process.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable

from dg_engine.engine import Engine
from dg_engine.job import CanvasJob, DoneKind, Frame, Priority
from dg_engine.tokenizer import Tokenizer

from dg_lsp.drafts import Draft, Piece, width_of
from dg_lsp.jobs import edit_job, filled_in, hole_job
from dg_lsp.languages import language_of
from dg_lsp.lines import Lines, body_of
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.prompts.settings import InfillSettings
from dg_lsp.prompts.view import CursorView, newline_of, place_of, unix, view_at
from dg_lsp.results import Completion, Edit, Explanation, OnDraft, Source
from dg_lsp.runner import Answer, Runner
from dg_lsp.scope import opens_block
from dg_lsp.stopwatch import Stopwatch
from dg_lsp.suggestion import Place, suggestion_of

__all__ = [
    "Completer",
    "Completion",
    "Draft",
    "Edit",
    "Explanation",
    "Piece",
    "Source",
    "language_of",
]


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
    ) -> Completion:
        """As `complete`, for a view that is already cut out of a document."""
        watch = Stopwatch(self._clock)
        blocks = opens_block(view) if multi_line is None else multi_line
        spent = self.prompt_format.encode_ms
        prompt = self.prompt_format.build(view, self.settings.budget)
        job = hole_job(
            job_id or self._new_id(),
            prompt,
            self.prompt_format,
            self.settings,
            multi_line=blocks,
            deadline_ms=deadline_ms,
            priority=priority,
            alternatives=alternatives,
        )
        watch.lap_prompt(self.prompt_format.encode_ms - spent)
        answer = await self._runner.run(job, on_draft)
        watch.skip()
        place = Place(view=view, multi_line=blocks)
        rows = range(len(answer.frame.ids)) if answer.frame else range(0)
        # Several rows may come to the same text.
        looked_at = 1 if alternatives == 1 else 2 * alternatives
        texts = [self._text(job, answer.frame, row) for row in rows[:looked_at]]
        offers = [suggestion_of(text, place) for text in texts]
        first = offers[0].text if offers else ""
        others = dict.fromkeys(offer.text for offer in offers[1:] if offer.text)
        others.pop(first, None)
        watch.lap("suggest")
        return Completion(
            insert=first,
            done=answer.done.kind,
            steps=answer.frame.step if answer.frame else 0,
            forwards=answer.frame.forwards if answer.frame else 0,
            confidence=_confidence(answer.frame),
            ms=watch.stages(answer.frame),
            reason="" if first else _reason(answer, offers[0].reason if offers else ""),
            alternatives=list(others)[: alternatives - 1],
        )

    async def edit(
        self,
        source: Source,
        first_line: int,
        last_line: int,
        instruction: str,
        *,
        on_draft: OnDraft | None = None,
        deadline_ms: int | None = None,
    ) -> Edit:
        """Change lines `first_line` to `last_line` (from 1, both included) as told."""
        return await self.edit_lines(
            Lines.of(source.text),
            first_line,
            last_line,
            instruction,
            path=source.path,
            language=source.language,
            on_draft=on_draft,
            deadline_ms=deadline_ms,
        )

    async def edit_lines(
        self,
        lines: Lines,
        first_line: int,
        last_line: int,
        instruction: str,
        *,
        path: str,
        language: str,
        on_draft: OnDraft | None = None,
        deadline_ms: int | None = None,
    ) -> Edit:
        """As `edit`, for a line table."""
        watch = Stopwatch(self._clock)
        chosen = lines.between(first_line - 1, last_line)
        kept = "".join(chosen[:-1]) + body_of(chosen[-1])
        old = unix(kept)
        # The line break before the lines belongs to them: tokens hold it with the indentation.
        if first_line > 1:
            above = first_line - 2
            view = view_at(
                lines,
                above,
                len(body_of(lines[above])),
                path=path,
                language=language,
                skip_to=last_line,
            )
            region = "\n" + old
        else:
            view = view_at(lines, 0, 0, path=path, language=language, skip_to=last_line)
            region = old
        ids = self.prompt_format.encode(region)
        spent = self.prompt_format.encode_ms
        limit = self.settings.edit.canvas
        if not ids or len(ids) > limit:
            size = f"The lines are {len(ids)} tokens long; choose lines of 1 to {limit} tokens."
            return Edit(kept, DoneKind.ERROR, 0, 0, watch.stages(None), size)
        prompt = self.prompt_format.build_edit(view, old, instruction, self.settings.budget)
        job = edit_job(
            self._new_id(),
            prompt,
            ids,
            1 if first_line > 1 else 0,
            self.prompt_format,
            self.settings,
            deadline_ms=deadline_ms,
        )
        watch.lap_prompt(self.prompt_format.encode_ms - spent)
        answer = await self._runner.run(job, on_draft)
        watch.skip()
        new = kept
        if answer.frame and answer.frame.ids and answer.done.kind in _USABLE:
            text = self.tokenizer.decode(answer.frame.ids[0][: len(ids)])
            new = text.removeprefix("\n" if first_line > 1 else "")
            new = new if old.endswith("\n") else new.rstrip("\n")
            new = new.replace("\n", newline_of(lines))
        watch.lap("suggest")
        return Edit(
            new_text=new,
            done=answer.done.kind,
            steps=answer.frame.step if answer.frame else 0,
            forwards=answer.frame.forwards if answer.frame else 0,
            ms=watch.stages(answer.frame),
            reason="" if new != kept else _reason(answer, "The model would change nothing here."),
        )

    def explain(
        self, source: Source, offset: int, *, multi_line: bool | None = None
    ) -> Explanation:
        """The job that `complete` would send."""
        view = _view_of(source, offset)
        blocks = opens_block(view) if multi_line is None else multi_line
        prompt = self.prompt_format.build(view, self.settings.budget)
        job = hole_job("explain", prompt, self.prompt_format, self.settings, multi_line=blocks)
        return Explanation(job=job, sections=prompt.sections, multi_line=blocks)

    def _text(self, job: CanvasJob, frame: Frame | None, row: int) -> str:
        if frame is None:
            return ""
        return self.prompt_format.answer(filled_in(job, frame.ids[row], width_of(frame, row)))

    def _new_id(self) -> str:
        return f"job-{next(self._numbers)}"


def _view_of(source: Source, offset: int) -> CursorView:
    line, column = place_of(source.text, offset)
    return view_at(Lines.of(source.text), line, column, path=source.path, language=source.language)


_USABLE = frozenset({DoneKind.CONVERGED, DoneKind.MAX_STEPS, DoneKind.DEADLINE})


def _confidence(frame: Frame | None) -> float:
    if frame is None or not frame.scores or math.isnan(frame.scores[0]):
        return 0.0
    return min(math.exp(frame.scores[0]), 1.0)


def _reason(answer: Answer, otherwise: str) -> str:
    """Why there is nothing to offer, in one sentence."""
    if answer.done.kind is DoneKind.ERROR:
        return answer.done.message or "The engine failed."
    if answer.done.kind is DoneKind.CANCELLED:
        return "The request was cancelled."
    if answer.done.kind is DoneKind.DEADLINE and answer.frame is None:
        return "No draft was ready within the deadline."
    return otherwise or "The model proposed nothing here."
