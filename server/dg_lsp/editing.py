"""Instructed edits: from lines and a wish to jobs, and from their answers to new lines.

What the model may do with the lines: an edit is tried with each `edit_slack` of open positions
behind its seeds, and the try whose free positions the model is surest of wins (the mean
log-probability of its own choices, the one number that the engine gives for canvases that were
not raced in one job). Lines longer than a canvas are solved in overlapping windows.

Measured with dg-tiny, which was not trained on edits, on held-out lines of Python with the
instruction "complete the line", slack 0 and 8: of 23 whole lines the winner left 20 as they were,
as slack 0 alone does (slack 8 alone none); of 23 lines with three tokens cut out neither restored
one, and 8 won 5 times. So room costs time and does no harm; what it gains needs a better model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import takewhile

import msgspec
from dg_engine.job import CanvasJob, DoneKind, Frame, Priority, Role
from dg_engine.tokenizer import Tokenizer

from dg_lsp.allowance import Allowance
from dg_lsp.drafts import width_of
from dg_lsp.edit_windows import Room, end_of, windows_of
from dg_lsp.indentation import habit_around, in_habit, with_endings_of
from dg_lsp.jobs import edit_job, filled_in, hole_job
from dg_lsp.laps import Laps
from dg_lsp.lines import body_of
from dg_lsp.privacy.secrets import holds_mask, masked
from dg_lsp.privacy.views import masked_around
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.prompts.settings import InfillSettings
from dg_lsp.prompts.view import CursorView, newline_of, unix, view_at
from dg_lsp.results import Edit, EditDraft, EditRequest, OnEditDraft
from dg_lsp.runner import Answer, Runner, reason_of
from dg_lsp.syntax.window import window_of

SECRET_IN_LINES = (
    "The lines hold what looks like a secret, which no model is shown; choose lines without it."
)
USABLE = frozenset({DoneKind.CONVERGED, DoneKind.MAX_STEPS, DoneKind.DEADLINE})


class Editing:
    """Changes lines as told."""

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
        self,
        asked: EditRequest,
        settings: InfillSettings,
        *,
        on_draft: OnEditDraft | None = None,
        deadline_ms: int | None = None,
    ) -> Edit:
        """The new lines, or the old ones and why."""
        spent = self.prompt_format.encode_ms
        work = _OneEdit(self, asked, settings, on_draft, deadline_ms)
        view, shown = masked_around(work.view, work.region)
        if shown != work.region:
            return work.refused(SECRET_IN_LINES)
        size = len(self.prompt_format.encode(work.region))
        if size > settings.edit_tokens:
            return work.refused(
                f"The lines are {size} tokens long; choose at most {settings.edit_tokens} tokens."
            )
        work.watch.lap_prompt(self.prompt_format.encode_ms - spent)
        if work.old.strip():
            await work.change(view, size)
        else:
            await work.write(view)
        return work.edit()


class _OneEdit:
    """One edit being made. The text that jobs see begins with the line break before the lines:
    tokens hold it together with the first line's indentation."""

    def __init__(
        self,
        editing: Editing,
        asked: EditRequest,
        settings: InfillSettings,
        on_draft: OnEditDraft | None,
        deadline_ms: int | None,
    ) -> None:
        self.editing = editing
        self.asked = asked
        self.settings = settings
        self.format = editing.prompt_format
        self.watch = Laps(editing.clock)
        chosen = asked.lines.between(asked.first, asked.last + 1)
        self.kept = "".join(chosen[:-1]) + body_of(chosen[-1])
        """The old text, line breaks as they are."""
        self.old = unix(self.kept)
        self.lead = "\n" if asked.first > 0 else ""
        self.region = self.lead + self.old
        self.view = _view_of(asked)
        self.wish = masked(asked.instruction)
        self._chosen = chosen
        self._habit = habit_around(self.view.before + self.old + self.view.after, asked.language)
        self._on_draft = on_draft
        self._allowance = Allowance(editing.clock, deadline_ms)
        self._steps = self._forwards = 0
        self._ms: dict[str, float] = {}
        self._late = False
        self._last: Answer | None = None
        self._new: str | None = None

    async def change(self, view: CursorView, size: int) -> None:
        """Solve the region: in one canvas where it fits, else window by window."""
        canvas, encode = self.settings.edit.canvas, self.format.encode
        room = Room(0, size, self.settings.edit_pins)
        windows = [self.region]
        if size > canvas:
            room = Room.of(canvas, self.settings.edit_pins, max(self.settings.edit_slack))
            windows = windows_of(self.region, encode, self.editing.tokenizer.decode, room.fresh)
        self._allowance.jobs = len(windows) * len(self.settings.edit_slack)
        solved = ""
        for index, fresh in enumerate(windows):
            rest = "".join(windows[index + 1 :])
            late = self._allowance.is_spent
            new = None if late else await self._solve(view, solved, fresh, rest, room)
            if new is None:
                # What was solved in time stands; a failure leaves everything as it was.
                self._late = not self._failed
                self._new = solved + fresh + rest if solved and self._late else None
                return
            solved += new
        self._new = solved

    async def write(self, view: CursorView) -> None:
        """Fill blank lines: a block behind the first one's indentation."""
        first, _, rest = self.old.partition("\n")
        lead = self.lead + first
        rest = self.old[len(first) :]
        here = msgspec.structs.replace(view, after=rest + view.after)
        prompt = self.format.build_edit(here, self.old, self.wish, self.settings.budget)
        ids = [*prompt.ids, *self.format.encode(lead)]
        job = hole_job(
            self.editing.new_id(),
            msgspec.structs.replace(prompt, ids=ids),
            self.format,
            self.settings,
            multi_line=True,
            deadline_ms=self._allowance.share_ms(),
            priority=Priority.EDIT,
        )

        def text_of(frame: Frame) -> str:
            filled = self.format.answer(filled_in(job, frame.ids[0], width_of(frame, 0)))
            return lead + filled.rstrip() + rest

        answer = await self._ask(job, text_of)
        if answer.frame and answer.done.kind in USABLE:
            self._new = text_of(answer.frame)

    def edit(self) -> Edit:
        """What came of it."""
        new, last = self.kept, self._last
        done = DoneKind.DEADLINE if last is None or self._late else last.done.kind
        reason = "The model would change nothing here."
        if self._new is not None:
            new = self._finished(self._new)
            if holds_mask(new) and not holds_mask(self.kept):
                new, reason = self.kept, "The model repeated a masked secret, so nothing changed."
        self.watch.lap("suggest")
        return Edit(
            new_text=new,
            done=done,
            steps=self._steps,
            forwards=self._forwards,
            ms={**self._ms, **self.watch.stages(None)},
            reason="" if new != self.kept else reason_of(last, reason),
            breaks_syntax=new != self.kept and self._breaks(unix(new)),
        )

    def _breaks(self, new: str) -> bool:
        window = window_of(self.view)
        if window is None:
            return False
        return window.faults_with(self.lead + new) > window.faults_with(self.region)

    def refused(self, reason: str) -> Edit:
        """The lines cannot be edited, whatever the engine."""
        ms = self.watch.stages(None)
        return Edit(self.kept, DoneKind.ERROR, 0, 0, ms, reason, bad_input=True)

    @property
    def _failed(self) -> bool:
        return self._last is not None and self._last.done.kind not in USABLE

    async def _solve(
        self, view: CursorView, solved: str, fresh: str, rest: str, room: Room
    ) -> str | None:
        """New text for `fresh`; None when no try came to a draft."""
        encode, decode = self.format.encode, self.editing.tokenizer.decode
        context = end_of(solved, encode, room.solved) if solved else ""
        here = msgspec.structs.replace(
            view,
            before=view.before + solved[: len(solved) - len(context)],
            after=rest + view.after,
        )
        prompt = self.format.build_edit(here, fresh, self.wish, self.settings.budget)
        front, old = encode(context), encode(fresh)
        # The line break before the lines and the first one's indentation stay.
        keeps = not solved and bool(self.lead)
        pinned = sum(1 for _ in takewhile(lambda i: not decode([i]).strip(), old)) if keeps else 0
        best: tuple[float, str] | None = None
        space = self.settings.edit.canvas - len(front) - len(old)
        for slack in sorted({min(slack, space) for slack in self.settings.edit_slack}):
            if best is not None and self._allowance.is_spent:
                break
            job = edit_job(
                self.editing.new_id(),
                prompt,
                old,
                pinned,
                self.format,
                self.settings,
                solved=front,
                slack=slack,
                pins=room.pins,
                deadline_ms=self._allowance.share_ms(),
            )

            def text_of(frame: Frame, slack: int = slack) -> str:
                free = frame.ids[0][len(front) : len(front) + len(old) + slack]
                return self.format.answer(free) if slack else decode(free)

            answer = await self._ask(job, lambda f, of=text_of: solved + of(f) + rest)
            if self._failed:
                return None
            if answer.frame is None:
                continue
            score = _score(answer.frame)
            if best is None or score > best[0]:
                best = score, text_of(answer.frame)
        return best[1] if best else None

    async def _ask(self, job: CanvasJob, text_of: Callable[[Frame], str]) -> Answer:
        def show(frame: Frame) -> None:
            if self._on_draft:
                step = self._steps + frame.step
                text = self._finished(text_of(frame))
                self._on_draft(EditDraft(step, text, _mean_entropy(job, frame)))

        answer = await self.editing.runner.run(job, on_frame=show)
        self.watch.skip()
        self._last = answer
        if answer.frame is not None:
            self._steps += answer.frame.step
            self._forwards += answer.frame.forwards
            for stage, ms in answer.frame.ms.items():
                self._ms[stage] = self._ms.get(stage, 0.0) + ms
        return answer

    def _finished(self, region: str) -> str:
        """A region as the document writes it: its indentation, its line breaks, its end."""
        new = region.removeprefix(self.lead)
        if not self.old.endswith("\n"):
            new = new.rstrip() if self.old == self.old.rstrip() else new.rstrip("\n")
        new = in_habit(new, self.old, self._habit)
        return with_endings_of(new, self._chosen, newline_of(self.asked.lines))


def _view_of(asked: EditRequest) -> CursorView:
    """The text around the lines: up to the end of the line before, and from their own end."""
    above = max(asked.first - 1, 0)
    return view_at(
        asked.lines,
        above,
        len(body_of(asked.lines[above])) if asked.first > 0 else 0,
        path=asked.path,
        language=asked.language,
        skip_to=asked.last + 1,
    )


def _score(frame: Frame) -> float:
    score = frame.scores[0] if frame.scores else -math.inf
    return -math.inf if math.isnan(score) else score


def _mean_entropy(job: CanvasJob, frame: Frame) -> float:
    pins = sum(role == Role.PIN for role in job.roles)
    free = max(len(frame.entropy) - pins, 1)
    return sum(frame.entropy) / free
