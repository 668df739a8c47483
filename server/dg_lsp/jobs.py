"""Canvas jobs for holes and edits, built by pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from dg_engine.job import CanvasJob, Priority, Role, Stop, StopKind

from dg_lsp.prompts.base import Prompt, PromptFormat
from dg_lsp.prompts.settings import HoleSettings, InfillSettings


def hole_job(
    job_id: str,
    prompt: Prompt,
    prompt_format: PromptFormat,
    settings: InfillSettings,
    *,
    multi_line: bool,
    deadline_ms: int | None = None,
    priority: Priority = Priority.INTERACTIVE,
    alternatives: int = 1,
) -> CanvasJob:
    """Fill the hole between the prompt and its suffix: one line, or a block."""
    hole = settings.block if multi_line else settings.line
    holes, pins = _hole_and_pins(hole, prompt.suffix)
    width = holes + len(pins)
    return CanvasJob(
        id=job_id,
        prompt=prompt.ids,
        canvas=[0] * holes + pins,
        roles=_roles((Role.HOLE, holes), (Role.PIN, len(pins))),
        # A race returns its best distinct rows at no cost, and rows may come to the same text;
        # without a race each alternative is a canvas more.
        alternatives=2 * alternatives if hole.widths and alternatives > 1 else alternatives,
        widths=[w for w in hole.widths if w <= width],
        judge=prompt_format.judge(settings, prompt.suffix),
        causal_candidate=hole.causal_candidate,
        causal_sure=hole.causal_sure if alternatives == 1 else None,
        single_line=not multi_line,
        stop=Stop(StopKind.FIRST_EOS if multi_line else StopKind.FIRST_LINE),
        rule=hole.rule,
        max_steps=hole.max_steps,
        seed=settings.seed,
        deadline_ms=deadline_ms,
        priority=priority,
    )


def edit_job(
    job_id: str,
    prompt: Prompt,
    old: list[int],
    pinned: int,
    prompt_format: PromptFormat,
    settings: InfillSettings,
    *,
    solved: Sequence[int] = (),
    slack: int = 0,
    pins: int | None = None,
    deadline_ms: int | None = None,
) -> CanvasJob:
    """Change the `old` ids, of which the first `pinned` stay, in front of the pinned suffix.

    `solved` is pinned in front of them. With `slack` that many open positions follow, and an end
    token may close the text anywhere; without it, their number stays as it is. `pins` bounds the
    suffix, by the settings where it is left out.
    """
    room = settings.edit.canvas - len(solved) - len(old) - slack
    behind = prompt.suffix[: min(settings.edit_pins if pins is None else pins, room)]
    return CanvasJob(
        id=job_id,
        prompt=prompt.ids,
        canvas=[*solved, *old, *([0] * slack), *behind],
        roles=_roles(
            (Role.PIN, len(solved) + pinned),
            (Role.SEED, len(old) - pinned),
            (Role.HOLE, slack),
            (Role.PIN, len(behind)),
        ),
        judge=prompt_format.judge(settings, prompt.suffix),
        may_end=slack > 0,
        keep_seed_steps=settings.edit_keep_steps,
        stop=Stop(StopKind.WHOLE),
        rule=settings.edit.rule,
        max_steps=settings.edit.max_steps,
        seed=settings.seed,
        deadline_ms=deadline_ms,
        priority=Priority.EDIT,
    )


def marks_job(
    job_id: str,
    prompt: Prompt,
    widths: Sequence[int],
    between: Sequence[Sequence[int]],
    prompt_format: PromptFormat,
    settings: InfillSettings,
    *,
    deadline_ms: int | None = None,
) -> CanvasJob:
    """Fill several holes on one canvas, `widths` wide, with `between` pinned between them."""
    canvas = [0] * widths[0]
    runs = [(Role.HOLE, widths[0])]
    for pins, width in zip(between, widths[1:], strict=True):
        canvas += [*pins, *([0] * width)]
        runs += [(Role.PIN, len(pins)), (Role.HOLE, width)]
    behind = prompt.suffix[: min(settings.edit_pins, settings.edit.canvas - len(canvas))]
    return CanvasJob(
        id=job_id,
        prompt=prompt.ids,
        canvas=[*canvas, *behind],
        roles=_roles(*runs, (Role.PIN, len(behind))),
        judge=prompt_format.judge(settings, prompt.suffix),
        single_line=True,
        rule=settings.edit.rule,
        max_steps=settings.edit.max_steps,
        seed=settings.seed,
        deadline_ms=deadline_ms,
        priority=Priority.EDIT,
    )


def kinds_in(job: CanvasJob, width: int, length: int) -> bytes:
    """Roles of an answer's row of `length` ids whose raced hole is `width` wide."""
    if not job.widths:
        return job.roles[:length]
    first = job.roles.index(Role.HOLE)
    behind = length - first - width
    return _roles((Role.PIN, first), (Role.HOLE, width), (Role.PIN, behind))


def filled_in(job: CanvasJob, row: Sequence[int], width: int) -> list[int]:
    """The ids of a row that the model chose: all that are not pins."""
    kinds = kinds_in(job, width, len(row))
    return [i for i, role in zip(row, kinds, strict=True) if role != Role.PIN]


def _hole_and_pins(hole: HoleSettings, suffix: list[int]) -> tuple[int, list[int]]:
    """How many positions are left open, and the ids pinned behind them.

    With raced widths the engine swaps the open run for each width and crops at the canvas, so
    one open position and a canvas full of pins give every width as much suffix as fits. Near
    the end of a file there are fewer pins and the run must leave room for the widest.
    """
    if not hole.widths:
        return hole.canvas, []
    pins = suffix[: hole.canvas - 1]
    return min(hole.canvas, max(hole.widths) + len(pins)) - len(pins), pins


def _roles(*runs: tuple[Role, int]) -> bytes:
    return b"".join(bytes([role]) * count for role, count in runs)
