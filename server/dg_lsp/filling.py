"""Filling marks: each in turn, or the holes of one canvas together, each against all the others.

One mark is a hole like the one at a cursor: its lengths are raced by the engine. In turn, a mark is
filled behind the texts of those before it and in front of what stands before the next. Several on
one canvas get each of `mark_widths` in turn, all the same, and then each the width at which its
text ended by itself and the model was surest of it: at most one try more than there are widths.

Measured with dg-tiny on 60 pairs of held-out lines (bench/results/quality.md): in turn 31.7 % of
the marks are right, together 17.5 % in twice the time; with the true widths, which nobody knows,
37.5 % in turn and 34.2 % together in two thirds of the time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import msgspec
from dg_engine.job import DoneKind, Frame, Priority
from dg_engine.tokenizer import Tokenizer

from dg_lsp.allowance import Allowance
from dg_lsp.drafts import width_of
from dg_lsp.editing import SECRET_IN_LINES, USABLE
from dg_lsp.jobs import filled_in, hole_job, marks_job
from dg_lsp.lines import Lines
from dg_lsp.marks import Mark, between, filled, first_mark, grouped, shifted
from dg_lsp.privacy.views import masked_around
from dg_lsp.prompts.base import Prompt, PromptFormat
from dg_lsp.prompts.settings import InfillSettings
from dg_lsp.prompts.view import CursorView, view_at
from dg_lsp.results import Fill, FillRequest
from dg_lsp.runner import Answer, Runner, reason_of
from dg_lsp.suggestion import Place, suggestion_of


class Filling:
    """Fills marks."""

    def __init__(
        self,
        runner: Runner,
        tokenizer: Tokenizer,
        prompt_format: PromptFormat,
        new_id: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self.runner = runner
        self.tokenizer = tokenizer
        self.prompt_format = prompt_format
        self.new_id = new_id
        self.clock = clock

    async def run(
        self, asked: FillRequest, settings: InfillSettings, *, deadline_ms: int | None = None
    ) -> Fill:
        """A text for each mark, empty where there is none, and why."""
        work = _OneFill(self, asked, settings, deadline_ms)
        encode = self.prompt_format.encode
        room = max(settings.edit.canvas - settings.judge_pins, 1)
        widest = max(work.widths)
        groups = (
            grouped(asked.lines, asked.marks, room, widest, lambda text: len(encode(text)))
            if settings.marks_together
            else [[mark] for mark in asked.marks]
        )
        work.allowance.jobs = sum(
            1 if len(group) == 1 else len(work.widths) + 1 for group in groups
        )
        texts: list[str] = []
        for group in groups:
            if work.failed or work.allowance.is_spent:
                texts += [""] * len(group)
                continue
            # What is filled already is what the next canvas reads.
            done = asked.marks[: len(texts)]
            lines = filled(asked.lines, done, texts)
            here = [shifted(mark, done, texts) for mark in group]
            texts += await work.fill(lines, here)
        return work.fill_of(texts)


class _OneFill:
    """The marks of one request being filled."""

    def __init__(
        self,
        filling: Filling,
        asked: FillRequest,
        settings: InfillSettings,
        deadline_ms: int | None,
    ) -> None:
        self.filling = filling
        self.asked = asked
        self.settings = settings
        self.format = filling.prompt_format
        self.allowance = Allowance(filling.clock, deadline_ms)
        self.widths = [w for w in settings.mark_widths if w < settings.edit.canvas] or [1]
        self._started = filling.clock()
        self._steps = self._forwards = 0
        self._last: Answer | None = None
        self._reason = ""

    @property
    def failed(self) -> bool:
        """Whether the engine failed, so that asking on is of no use."""
        return self._last is not None and self._last.done.kind not in USABLE

    async def fill(self, lines: Lines, marks: Sequence[Mark]) -> list[str]:
        """Texts for the marks of one canvas."""
        pieces = [between(lines, a, b) for a, b in itertools.pairwise(marks)]
        view, shown = masked_around(self._view(lines, marks), "\0".join(pieces))
        if shown != "\0".join(pieces):
            self._reason = SECRET_IN_LINES
            return [""] * len(marks)
        answers = (
            [await self._fill_one(view)]
            if len(marks) == 1
            else await self._fill_all(view, [self.format.encode(piece) for piece in pieces])
        )
        texts: list[str] = []
        for mark, answer in zip(marks, answers, strict=True):
            place = self._place(lines, marks, texts, mark)
            offer = suggestion_of(answer, place)
            texts.append(offer.text)
            self._reason = self._reason or offer.reason
        return texts

    def fill_of(self, texts: list[str]) -> Fill:
        """What came of it."""
        none = not any(texts)
        return Fill(
            texts=texts,
            done=self._last.done.kind if self._last else DoneKind.DEADLINE,
            steps=self._steps,
            forwards=self._forwards,
            ms={"total": (self.filling.clock() - self._started) * 1e3},
            reason=reason_of(self._last, self._reason) if none else "",
        )

    async def _fill_one(self, view: CursorView) -> str:
        prompt = self.format.build(view, self.settings.budget)
        job = hole_job(
            self.filling.new_id(),
            prompt,
            self.format,
            self.settings,
            multi_line=False,
            deadline_ms=self.allowance.share_ms(),
            priority=Priority.EDIT,
        )
        self._count(answer := await self.filling.runner.run(job))
        if answer.frame is None or answer.done.kind not in USABLE:
            return ""
        return self.format.answer(filled_in(job, answer.frame.ids[0], width_of(answer.frame, 0)))

    async def _fill_all(self, view: CursorView, pieces: list[list[int]]) -> list[str]:
        prompt = self.format.build(view, self.settings.budget)
        room = self.settings.edit.canvas - sum(map(len, pieces))
        count = len(pieces) + 1
        tried: list[_Try] = []
        for width in [w for w in self.widths if w * count <= room] or [1]:
            await self._try(prompt, [width] * count, pieces, tried)
        if not tried:
            return [""] * count
        best = [min(tried, key=lambda t, n=n: t.doubts[n]).widths[n] for n in range(count)]
        if sum(best) <= room and all(best != found.widths for found in tried):
            await self._try(prompt, best, pieces, tried)
        chosen = next((found for found in tried if found.widths == best), None)
        return (chosen or min(tried, key=lambda t: t.doubts)).texts

    async def _try(
        self, prompt: Prompt, widths: list[int], pieces: list[list[int]], tried: list[_Try]
    ) -> None:
        """One canvas with these widths, unless the time is up or the engine failed."""
        if self.failed or (tried and self.allowance.is_spent):
            return
        job = marks_job(
            self.filling.new_id(),
            prompt,
            widths,
            pieces,
            self.format,
            self.settings,
            deadline_ms=self.allowance.share_ms(),
        )
        self._count(answer := await self.filling.runner.run(job))
        if answer.frame is not None and answer.done.kind in USABLE:
            tried.append(self._tried(answer.frame, widths, pieces))

    def _tried(self, frame: Frame, widths: list[int], pieces: list[list[int]]) -> _Try:
        texts: list[str] = []
        doubts: list[tuple[bool, float]] = []
        start = 0
        for index, width in enumerate(widths):
            ids = frame.ids[0][start : start + width]
            texts.append(self.format.answer(ids))
            doubts.append(_doubt(ids, frame.entropy[start : start + width], self._ends))
            start += width + (len(pieces[index]) if index < len(pieces) else 0)
        return _Try(widths, texts, doubts)

    @property
    def _ends(self) -> frozenset[int]:
        return self.filling.tokenizer.special_ids

    def _count(self, answer: Answer) -> None:
        self._last = answer
        if answer.frame is not None:
            self._steps += answer.frame.step
            self._forwards += answer.frame.forwards

    def _view(self, lines: Lines, marks: Sequence[Mark]) -> CursorView:
        """The text before the first mark, and behind the last one up to the next that is open."""
        first = self._at(lines, marks[0].line, marks[0].start)
        last = self._at(lines, marks[-1].line, marks[-1].end)
        after = last.after[: first_mark(last.after)]
        at_end = last.at_end and after == last.after
        return msgspec.structs.replace(first, after=after, at_end=at_end)

    def _place(
        self, lines: Lines, marks: Sequence[Mark], texts: Sequence[str], mark: Mark
    ) -> Place:
        """Where a text would stand, behind those that are chosen already."""
        before = marks[: len(texts)]
        here = shifted(mark, before, texts)
        lines = filled(lines, before, texts)
        view = self._at(lines, here.line, here.start)
        after = self._at(lines, here.line, here.end).after
        return Place(view=msgspec.structs.replace(view, after=after), multi_line=False, masked=True)

    def _at(self, lines: Lines, line: int, column: int) -> CursorView:
        asked = self.asked
        return view_at(lines, line, column, path=asked.path, language=asked.language)


class _Try(msgspec.Struct, frozen=True):
    """One canvas that was tried."""

    widths: list[int]
    texts: list[str]
    doubts: list[tuple[bool, float]]
    """Per mark, whether its text was cut by the width, and how unsure the model is of it."""


def _doubt(
    ids: Sequence[int], entropy: Sequence[float], ends: frozenset[int]
) -> tuple[bool, float]:
    """Whether no end token stands in a hole, and mean nats up to and with that token."""
    end = next((i + 1 for i, token in enumerate(ids) if token in ends), len(ids))
    seen = [value for value in entropy[:end] if not math.isnan(value)]
    is_cut = not any(token in ends for token in ids)
    return is_cut, sum(seen) / len(seen) if seen else math.inf
