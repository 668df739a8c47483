"""Ways to fill one hole that are measured side by side, each as a canvas job."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from dg_engine.job import CanvasJob, Judge, JudgeKind, Role, Rule

from dg_lsp.jobs import hole_job
from dg_lsp.lines import Lines
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.prompts.settings import HoleSettings, InfillSettings
from dg_lsp.prompts.view import CursorView, view_at


class Hole(msgspec.Struct, frozen=True):
    """One held-out hole: the text before it, what stood there, the text after it."""

    id: str
    prefix: str
    middle: str
    suffix: str
    path: str
    kind: str = "line"


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


Method = Callable[[Case], CanvasJob]


def case_of(hole: Hole, prompts: PromptFormat, settings: InfillSettings) -> Case:
    """Put the cursor into the hole and build what the server would send."""
    text = hole.prefix + hole.suffix
    line = hole.prefix.count("\n")
    column = len(hole.prefix) - (hole.prefix.rfind("\n") + 1)
    view = view_at(Lines.of(text), line, column, path=hole.path, language="python")
    prompt = prompts.build(view, settings.budget)
    job = hole_job(hole.id, prompt, prompts, settings, multi_line=False)
    return Case(hole, view, job, prompts.encode(hole.middle), prompt.suffix)


def with_line(settings: InfillSettings, **changes: object) -> InfillSettings:
    """The settings with another way to fill a line."""
    line: HoleSettings = msgspec.structs.replace(settings.line, **changes)
    return msgspec.structs.replace(settings, line=line)


def changed(**fields: object) -> Method:
    """The server's job with some fields replaced."""
    return lambda case: msgspec.structs.replace(case.job, **fields)


def known_length(canvas: int, steps: int, rule: Rule = Rule.TOP_K) -> Method:
    """The oracle: a hole as wide as the true text, the suffix pinned behind it."""

    def build(case: Case) -> CanvasJob:
        width = len(case.middle)
        pins = case.suffix[: max(0, canvas - width)]
        return msgspec.structs.replace(
            case.job,
            canvas=[0] * width + pins,
            roles=bytes([Role.HOLE]) * width + bytes([Role.PIN]) * len(pins),
            widths=[],
            causal_candidate=False,
            may_end=False,
            rule=rule,
            max_steps=steps,
        )

    return build


def causal_alone(case: Case) -> CanvasJob:
    """The causal mode's greedy line, no canvas."""
    return msgspec.structs.replace(
        case.job, causal_candidate=True, causal_sure=float("-inf"), widths=[16]
    )


def open_canvas(canvas: int, steps: int) -> Method:
    """Prompt only: one hole, ended by an end token; nothing pinned."""

    def build(case: Case) -> CanvasJob:
        return msgspec.structs.replace(
            case.job,
            canvas=[0] * canvas,
            roles=bytes([Role.HOLE]) * canvas,
            widths=[],
            causal_candidate=False,
            max_steps=steps,
        )

    return build


def raced(widths: list[int], steps: int, **fields: object) -> Method:
    """Widths over the pinned suffix, judged as the server judges unless `fields` say otherwise."""
    return changed(widths=widths, max_steps=steps, **fields)


WIDE = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24]
EIGHT = [1, 2, 3, 4, 6, 8, 11, 16]
SUFFIX_JUDGE = Judge(JudgeKind.CAUSAL, suffix_tokens=4)

METHODS: dict[str, Method] = {
    "default": lambda case: case.job,
    "known length, 1 step": known_length(64, 1),
    "known length, 2 steps": known_length(64, 2),
    "known length, 4 steps": known_length(64, 4),
    "known length, 8 steps": known_length(64, 8),
    "known length, 16 steps": known_length(64, 16),
    "known length, 4 steps, canvas 32": known_length(32, 4),
    "known length, entropy bound, 16 steps": known_length(64, 16, Rule.ENTROPY_BOUND),
    "causal line alone": causal_alone,
    "open canvas, 8 steps": open_canvas(32, 8),
    "14 widths, 4 steps": raced(WIDE, 4),
    "8 widths, 4 steps": raced(EIGHT, 4),
    "8 widths, 2 steps": raced(EIGHT, 2),
    "8 widths, 4 steps, holes may not end": raced(EIGHT, 4, may_end=False),
    "8 widths, 4 steps, without causal line": raced(EIGHT, 4, causal_candidate=False),
    "8 widths, 4 steps, judged with suffix": raced(EIGHT, 4, judge=SUFFIX_JUDGE),
    "8 widths, 4 steps, by confidence": raced(EIGHT, 4, judge=Judge(JudgeKind.CONFIDENCE)),
    "4 widths, 4 steps": raced([2, 4, 8, 16], 4),
    "4 widths, 2 steps": raced([2, 4, 8, 16], 2),
    "1 width of 16, 4 steps": raced([16], 4),
    "4 widths, 2 steps, unless sure (-0.1)": raced([2, 4, 8, 16], 2, causal_sure=-0.1),
    "4 widths, 2 steps, unless sure (-0.2)": raced([2, 4, 8, 16], 2, causal_sure=-0.2),
    "4 widths, 2 steps, unless sure (-0.4)": raced([2, 4, 8, 16], 2, causal_sure=-0.4),
    "4 widths, 1 step": raced([2, 4, 8, 16], 1),
}
