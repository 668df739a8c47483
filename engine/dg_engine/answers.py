"""From finished candidates to the last frame of a job, for every engine."""

from __future__ import annotations

from collections.abc import Iterable

from dg_engine.candidates import Row
from dg_engine.causal import Candidate, distinct
from dg_engine.job import CanvasJob, Done, Frame, Role


def tail_of(job: CanvasJob) -> list[int]:
    """What the judge reads behind a candidate."""
    judge = job.judge
    if judge.tail is not None:
        return judge.tail
    stop = max((i for i, role in enumerate(job.roles) if role != Role.PIN), default=-1) + 1
    return job.canvas[stop : stop + judge.suffix_tokens]


def free_count(row: Row) -> int:
    """Positions that are not PIN."""
    return sum(role != Role.PIN for role in row.roles)


def answer(
    job: CanvasJob,
    candidates: Iterable[Candidate],
    done: Done,
    *,
    step: int,
    forwards: int,
    cached_tokens: int,
    ms: dict[str, float],
) -> Frame:
    """The last frame: distinct candidates, best first, as many as were asked for."""
    kept = distinct(candidates)[: max(job.alternatives, 1)]
    return Frame(
        job=job.id,
        step=step,
        ids=[c.canvas for c in kept],
        widths=[free_count(c.row) for c in kept],
        settled=[free_count(c.row) for c in kept],
        entropy=kept[0].entropy or [0.0] * len(kept[0].canvas),
        scores=[c.mean for c in kept],
        forwards=forwards,
        cached_tokens=cached_tokens,
        ms=ms,
        done=done,
    )
