"""What one vLLM request carries: a canvas to denoise, to score, or a greedy line.

It travels in `SamplingParams.extra_args` (over HTTP in `vllm_xargs`), which hold flat lists of
numbers and scalars only.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from dg_engine.job import CanvasJob, JobError, Role, Rule, StopKind

PREFIX = "dg_"
MAX_STABILITY = 4
"""Drafts that the state of a request remembers."""


class Kind(enum.IntEnum):
    """What is done behind the prompt."""

    CANVAS = 0
    """Denoise the canvas."""
    SCORE = 1
    """One causal pass over the canvas: the log-probability of each id but the first."""
    GREEDY = 2
    """Go on causally from the one id of the canvas, always with the likeliest token."""


class CanvasRequest(msgspec.Struct, frozen=True):
    """See CanvasJob for the fields that share a name with it.

    A SCORE or GREEDY request starts with the last prompt token in its canvas, since the rows of the
    canvas are where logits are computed.
    """

    canvas: list[int]
    roles: list[int]
    kind: int = Kind.CANVAS
    rule: str = Rule.TOP_K
    max_steps: int = 4
    """For GREEDY, tokens at most."""
    entropy_bound: float = 0.1
    confidence: float = 0.005
    stability: int = 1
    t_min: float = 0.4
    t_max: float = 0.8
    keep_seed_steps: int = 0
    stop: str = StopKind.WHOLE
    lines: int = 1
    seed: int = 0
    blocks: int = 1
    single_line: int = 0
    may_end: int = 1
    text_only: int = 1

    @property
    def width(self) -> int:
        """Positions of the first canvas."""
        return len(self.canvas)

    def to_args(self) -> dict[str, Any]:
        """Flat `extra_args`."""
        return {f"{PREFIX}{k}": v for k, v in msgspec.structs.asdict(self).items()}

    @classmethod
    def from_args(cls, args: Mapping[str, Any] | None) -> CanvasRequest | None:
        """The request in `extra_args`, None where they hold none.

        Raises JobError with one sentence for args of ours that cannot be run.
        """
        found = {k.removeprefix(PREFIX): v for k, v in (args or {}).items() if k.startswith(PREFIX)}
        if not found:
            return None
        try:
            request = msgspec.convert(found, cls)
        except msgspec.ValidationError as error:
            raise JobError(f"The canvas request cannot be read: {error}.") from error
        if not request.canvas or len(request.canvas) != len(request.roles):
            raise JobError("A canvas request needs at least one id, and one role per id.")
        if request.max_steps < 1 or request.blocks < 1:
            raise JobError("A canvas request needs at least one step and one block.")
        return request


def canvas_request(job: CanvasJob, canvas: list[int], roles: bytes, seed: int) -> CanvasRequest:
    """One row of a job; raises JobError for what this engine does not keep track of."""
    if job.stability > MAX_STABILITY:
        raise JobError(f"stability is {job.stability}; this engine takes 0 to {MAX_STABILITY}.")
    return CanvasRequest(
        canvas=canvas,
        roles=list(roles),
        rule=job.rule,
        max_steps=job.max_steps,
        entropy_bound=job.entropy_bound,
        confidence=job.confidence,
        stability=job.stability,
        t_min=job.t_min,
        t_max=job.t_max,
        keep_seed_steps=job.keep_seed_steps,
        stop=job.stop.kind,
        lines=job.stop.lines,
        seed=seed,
        blocks=job.blocks,
        single_line=job.single_line,
        may_end=job.may_end,
        text_only=job.text_only,
    )


def score_request(ids: list[int]) -> CanvasRequest:
    """Log-probabilities of ids[1:], each after all before it."""
    return CanvasRequest(ids, [Role.PIN] * len(ids), kind=Kind.SCORE, max_steps=1)


def greedy_request(job: CanvasJob, last: int, limit: int) -> CanvasRequest:
    """The causal continuation behind `last`, at most `limit` tokens."""
    return CanvasRequest(
        [last], [Role.PIN], kind=Kind.GREEDY, max_steps=limit,
        single_line=job.single_line, text_only=job.text_only,
    )  # fmt: skip
