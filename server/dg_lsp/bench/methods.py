"""Ways to fill a hole that are measured side by side, all on the same holes and seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from dg_engine.job import CanvasJob, Judge, JudgeKind, Role, Rule

from dg_lsp.bench import pairs, typed
from dg_lsp.bench.cases import (
    Answer,
    Case,
    Solve,
    Subject,
    ask,
    case_of,
    filled,
    last_frame,
    shown,
)
from dg_lsp.bench.holes import Hole
from dg_lsp.bench.outcome import Filled, outcome_of
from dg_lsp.jobs import filled_in

BuildJob = Callable[[Case], CanvasJob]
ONE = frozenset({"line", "rest"})
BLOCK = frozenset({"lines", "span"})
QUIET = frozenset({"quiet"})
TWO = frozenset({"two"})
ALL = "all"


class Method(NamedTuple):
    """A way to fill holes, and the kinds of hole that it is for."""

    solve: Solve
    leaves: frozenset[str] = TWO | QUIET
    """Kinds that it leaves out."""
    only: frozenset[str] | None = None
    """The only kinds that it is for; all others where None."""
    by_twin: bool = False
    """Whether the twin solves it."""

    def fits(self, kind: str) -> bool:
        """Whether holes of a kind are filled by this method."""
        return kind in self.only if self.only is not None else kind not in self.leaves


WIDTHS = {
    True: {
        1: [16],
        4: [2, 4, 8, 16],
        8: [1, 2, 3, 4, 6, 8, 11, 16],
        14: [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24],
    },
    False: {
        1: [48],
        4: [8, 16, 32, 48],
        8: [4, 8, 12, 16, 24, 32, 40, 48],
        14: [2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56],
    },
}
"""Raced lengths by how many, of one line (True) and of several (False)."""
ORACLE_CANVAS = {True: 64, False: 128}
CAUSAL_LIMIT = {True: 64, False: 192}
"""Tokens after which a causal line is cut off."""


def widths_of(case: Case, count: int) -> list[int]:
    """`count` lengths to race, as far as they fit the job's canvas."""
    room = min(case.canvas_length, max(len(case.job.canvas), *case.job.widths, 1))
    return [width for width in WIDTHS[case.is_short][count] if width <= room] or [room]


def known_length(steps: int, canvas: int | None = None, rule: Rule = Rule.TOP_K) -> BuildJob:
    """The oracle: a hole as wide as the true text, the suffix pinned behind it."""

    def build(case: Case) -> CanvasJob:
        size = min(case.canvas_length, canvas or ORACLE_CANVAS[case.is_short])
        width = max(1, min(len(case.middle), case.canvas_length))
        pins = case.suffix[: max(0, size - width)]
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
    """The causal mode's greedy text, no canvas."""
    limit = min(CAUSAL_LIMIT[case.is_short], case.canvas_length)
    return msgspec.structs.replace(
        case.job,
        canvas=[0] * limit,
        roles=bytes([Role.HOLE]) * limit,
        causal_candidate=True,
        causal_sure=float("-inf"),
        widths=[limit],
    )


def open_canvas(steps: int) -> BuildJob:
    """Prompt only: one hole, ended by an end token; nothing pinned."""

    def build(case: Case) -> CanvasJob:
        width = min(case.canvas_length, ORACLE_CANVAS[case.is_short] // 2)
        return msgspec.structs.replace(
            case.job,
            canvas=[0] * width,
            roles=bytes([Role.HOLE]) * width,
            widths=[],
            causal_candidate=False,
            max_steps=steps,
        )

    return build


def raced(count: int, steps: int, **fields: object) -> BuildJob:
    """Lengths over the pinned suffix, judged as the server judges unless `fields` say otherwise."""

    def build(case: Case) -> CanvasJob:
        fresh = {"causal_sure": None, "widths": widths_of(case, count), "max_steps": steps}
        return msgspec.structs.replace(case.job, **fresh | fields)

    return build


def judged_by_suffix(
    count: int, steps: int, suffix_tokens: int, *, causal_candidate: bool
) -> BuildJob:
    """Raced lengths, judged by the causal mode over the text and the first suffix tokens."""

    def build(case: Case) -> CanvasJob:
        return msgspec.structs.replace(
            raced(count, steps)(case),
            judge=Judge(JudgeKind.CAUSAL, tail=case.suffix[:suffix_tokens]),
            causal_candidate=causal_candidate,
        )

    return build


def cascade(threshold: float) -> BuildJob:
    """The causal line where its mean log-probability reaches a threshold, else the server's way."""

    def build(case: Case) -> CanvasJob:
        return msgspec.structs.replace(case.job, causal_candidate=True, causal_sure=threshold)

    return build


def solved(build: BuildJob) -> Solve:
    """One job for each hole."""

    async def solve(subject: Subject, hole: Hole) -> Filled:
        case = case_of(hole, subject)
        return filled(subject, await ask(subject, case, build(case)))

    return solve


def best_of(count: int, steps: int) -> Solve:
    """The right one of all candidates where one is: what a judge without faults would give."""

    async def solve(subject: Subject, hole: Hole) -> Filled:
        case = case_of(hole, subject)
        job = raced(count, steps, alternatives=count + 1)(case)
        frame, ms = await last_frame(subject.engine, job)
        if frame is None or not frame.ids:
            return filled(subject, Answer("", 0, 0, ms))
        answers = [
            Answer(shown(subject.prompts.answer(filled_in(job, ids, width)), case),
                   frame.step, frame.forwards, ms, score, width)
            for ids, width, score in zip(frame.ids, frame.widths, frame.scores, strict=True)
        ]  # fmt: skip
        found = [filled(subject, answer) for answer in answers]
        return next((one for one in found if outcome_of(hole, one).exact), found[0])

    return solve


def by_first_step(count: int, steps: int) -> Solve:
    """The length whose first step is the most confident, then that one alone."""

    async def solve(subject: Subject, hole: Hole) -> Filled:
        case = case_of(hole, subject)
        race = raced(
            count, 1, judge=Judge(JudgeKind.CONFIDENCE), causal_candidate=False
        )(case)  # fmt: skip
        frame, ms = await last_frame(subject.engine, race)
        if frame is None or not frame.widths:
            return filled(subject, Answer("", 0, 0, ms))
        width = frame.widths[0]
        seed = None if race.seed is None else race.seed + race.widths.index(width)
        alone = msgspec.structs.replace(race, widths=[width], max_steps=steps, seed=seed)
        answer = await ask(subject, case, alone)
        return filled(subject, answer.after(Answer("", frame.step, frame.forwards, ms)))

    return solve


SCORES = Judge(JudgeKind.CONFIDENCE)
SUFFIX_TOKENS = (0, 2, 4, 8)
FOR_BLOCKS = frozenset({(1, 8), (4, 4), (4, 8), (8, 4), (8, 8)})
"""Numbers of lengths and steps that are tried on holes of several lines too, each of which costs
ten times a line."""

METHODS: dict[str, Method] = {
    "default": Method(solved(lambda case: case.job), leaves=TWO),
    **{
        f"known length, {steps} step{'s' * (steps > 1)}": Method(solved(known_length(steps)))
        for steps in (1, 2, 4, 8, 16)
    },
    "known length, 4 steps, canvas 32": Method(solved(known_length(4, 32)), only=ONE),
    "known length, entropy bound, 16 steps": Method(
        solved(known_length(16, rule=Rule.ENTROPY_BOUND))
    ),
    "causal line alone": Method(solved(causal_alone), leaves=TWO),
    "twin": Method(solved(causal_alone), leaves=TWO, by_twin=True),
    "open canvas, 8 steps": Method(solved(open_canvas(8))),
    "8 widths, 4 steps, by first step": Method(by_first_step(8, 4)),
    "8 widths, 4 steps, by final score": Method(
        solved(raced(8, 4, judge=SCORES, causal_candidate=False))
    ),
    **{
        f"8 widths, 4 steps, judged with {count} suffix tokens{end}": Method(
            solved(judged_by_suffix(8, 4, count, causal_candidate=with_line)),
            only=None if with_line else ONE,
        )
        for count in SUFFIX_TOKENS
        for with_line, end in ((True, ""), (False, ", no causal line"))
    },
    **{
        f"{count} widths, {steps} steps, the best of all": Method(best_of(count, steps), only=ONE)
        for count, steps in ((8, 2), (14, 4))
    },
    "8 widths, 4 steps, no causal line": Method(solved(raced(8, 4, causal_candidate=False))),
    "8 widths, 4 steps, holes may not end": Method(solved(raced(8, 4, may_end=False))),
    **{
        f"{count} width{'s' * (count > 1)}, {steps} step{'s' * (steps > 1)}": Method(
            solved(raced(count, steps)), only=None if (count, steps) in FOR_BLOCKS else ONE
        )
        for count, steps in (
            (1, 1), (1, 2), (1, 4), (1, 8), (4, 1), (4, 2), (4, 4), (4, 8), (4, 16), (8, 1), (8, 2),
            (8, 4), (8, 8), (14, 2), (14, 4),
        )
    },
    **{
        f"cascade, unless sure ({-percent / 100:g})": Method(solved(cascade(-percent / 100)), TWO)
        for percent in (5, 10, 20, 40, 60)
    },
    **{
        f"warm start after {count} character{'s' * (count > 1)}": Method(
            typed.after(count), only=ONE
        )
        for count in (1, 2, 3)
    },
    "two at once": Method(pairs.at_once, only=TWO),
    "two in turn": Method(pairs.in_turn, only=TWO),
    "two apart": Method(pairs.apart, only=TWO),
    "two at once, known lengths, 8 steps": Method(pairs.at_once_known(8), only=TWO),
    "two in turn, known lengths, 8 steps": Method(
        pairs.in_turn_by(known_length(8)), only=TWO
    ),
}  # fmt: skip


def known_methods(names: str, *, twin: bool) -> list[str]:
    """Names out of a list separated by ';', or of all; raises ValueError that names them."""
    wanted = list(METHODS) if names == ALL else [name.strip() for name in names.split(";")]
    for name in wanted:
        if name not in METHODS:
            raise ValueError(f"No method is called {name!r}; choose from: {'; '.join(METHODS)}.")
    if names == ALL:
        return [name for name in wanted if twin or not METHODS[name].by_twin]
    if not twin and any(METHODS[name].by_twin for name in wanted):
        raise ValueError("The method 'twin' needs another checkpoint; give it by --twin FOLDER.")
    return wanted
