"""The model's part: whether it would write at a line what the user's edit suggests for it.

The tokens that the edit would change are a hole, everything else of the line and what follows it
is pinned, and the last edit stands in the prompt. The hole is raced at the two lengths that the old
and the new text have; the model agrees when the winner is the new text, token for token.

Seeding the canvas with the line, as instructed edits do, asks nothing: dg-tiny keeps nearly every
seed as it is, be it the old line or the new one (`python -m bench.next_edit.seeds`).
"""

from __future__ import annotations

import msgspec
from dg_engine.job import CanvasJob, DoneKind, Priority, Role, Stop, StopKind

from dg_lsp.completion import Completer
from dg_lsp.lines import Lines, alike_ends, body_of
from dg_lsp.next_edit.finder import texts, view_around
from dg_lsp.next_edit.history import Edited
from dg_lsp.next_edit.proposal import Proposal
from dg_lsp.privacy.secrets import masked
from dg_lsp.privacy.views import masked_around
from dg_lsp.prompts.view import Snippet, SnippetKind, unix

_USABLE = frozenset({DoneKind.CONVERGED, DoneKind.MAX_STEPS})
_MARGIN_LINES = 2
"""Shown around the last edit."""
MOST_TOKENS = 48
"""Of a hole; what is longer is hardly ever right in every token."""


class Place(msgspec.Struct, frozen=True):
    """A proposal that the model is asked about."""

    lines: Lines
    proposal: Proposal
    path: str
    language: str
    edit: Edited
    """What the user did."""


class Asked(msgspec.Struct, frozen=True):
    """A job, and the ids in its hole that are the proposal's."""

    job: CanvasJob
    first: int
    """Where the hole begins on the canvas."""
    wanted: list[int]


async def agrees(completer: Completer, place: Place, deadline_ms: int) -> bool:
    """Whether the model writes the proposal of itself; False where it may not be asked."""
    asked = question(completer, place, deadline_ms)
    if asked is None:
        return False
    answer = await completer.ask(asked.job)
    frame = answer.frame
    if frame is None or answer.done.kind not in _USABLE or not frame.widths:
        return False
    written = frame.ids[0][asked.first : asked.first + frame.widths[0]]
    return written == asked.wanted


def question(completer: Completer, place: Place, deadline_ms: int | None = None) -> Asked | None:
    """The job for a place; None where a secret stands in the line or the change is too long."""
    settings, prompt_format = completer.settings, completer.prompt_format
    view = view_around(place.lines, place.proposal.line, place.path, place.language)
    old, new = texts(place.proposal, place.lines)
    shown, region = masked_around(view, old)
    if region != old:
        return None
    wish = _in_words(place) if settings.next_edit_in_words else ""
    shown = msgspec.structs.replace(shown, context=(edit_of(place),))
    prompt = prompt_format.build_edit(shown, old, wish, settings.budget)
    was, now = prompt_format.encode(old), prompt_format.encode(new)
    head, tail = _shared(was, now)
    wanted = now[head : len(now) - tail]
    widths = sorted({len(was) - head - tail, len(wanted)})
    canvas = settings.edit.canvas
    if widths[-1] > MOST_TOKENS or len(now) + widths[-1] > canvas:
        return None
    behind = [*now[len(now) - tail :], *prompt.suffix]
    behind = behind[: min(settings.edit_pins, canvas - head - widths[-1])]
    job = CanvasJob(
        id="",
        prompt=prompt.ids,
        canvas=[*now[:head], *([0] * widths[-1]), *behind],
        roles=bytes([Role.PIN] * head + [Role.HOLE] * widths[-1] + [Role.PIN] * len(behind)),
        widths=widths,
        judge=prompt_format.judge(settings, behind),
        may_end=False,
        single_line=True,
        stop=Stop(StopKind.WHOLE),
        rule=settings.line.rule,
        max_steps=settings.line.max_steps,
        seed=settings.seed,
        deadline_ms=deadline_ms,
        priority=Priority.PREFETCH,
    )
    return Asked(job, head, wanted)


def _shared(was: list[int], now: list[int]) -> tuple[int, int]:
    """How many tokens both lines have at either end, with a hole left between in each."""
    head, tail = alike_ends(was, now)
    if min(len(was), len(now)) == head + tail:
        if head:
            head -= 1
        else:
            tail -= 1
    return head, tail


def edit_of(place: Place) -> Snippet:
    """The lines that the user edited, as they are now."""
    edit = place.edit
    lines = place.lines.between(edit.first - _MARGIN_LINES, edit.end + _MARGIN_LINES)
    return Snippet(place.path, masked(unix("".join(lines)).rstrip("\n")), SnippetKind.EDIT)


def _in_words(place: Place) -> str:
    """What the user did, for models that read instructions."""
    old = " ".join(body_of(line).strip() for line in place.edit.old)
    new = " ".join(body_of(line).strip() for line in place.edit.new(place.lines))
    return masked(f"Make the change here that turned `{old}` into `{new}`, if it belongs here.")
