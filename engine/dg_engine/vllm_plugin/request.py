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
SPARE_TOKENS = 8
NO_END = -1
"""Blocks of a request that vLLM's own rules end."""


class Kind(enum.IntEnum):
    """What is done behind the prompt."""

    CANVAS = 0
    """Denoise the canvas."""
    SCORE = 1
    """One causal pass over the canvas: the log-probability of each id but the first."""
    GREEDY = 2
    """Go on causally from the one id of the canvas, always with the likeliest token."""


_ROLES, _KINDS = frozenset(map(int, Role)), frozenset(map(int, Kind))


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

    refused: int = 0
    """Set in place of a request that cannot be run, which ends with Code.REFUSED."""

    @property
    def width(self) -> int:
        """Positions of the first canvas."""
        return len(self.canvas)

    def most_tokens(self, canvas_length: int) -> int:
        """A limit for vLLM above what the request can emit, so that it never ends by that."""
        return max(self.max_steps, self.blocks * canvas_length) + SPARE_TOKENS

    def to_args(self) -> dict[str, Any]:
        """Flat `extra_args`."""
        return {f"{PREFIX}{k}": v for k, v in msgspec.to_builtins(self).items()}

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

    def check(self, canvas_length: int, vocab_size: int) -> None:
        """Raise JobError unless the request fits a model of these sizes."""
        if self.width > canvas_length:
            raise JobError(f"The canvas is {self.width} wide; this engine takes {canvas_length}.")
        if min(self.canvas) < 0 or max(self.canvas) >= vocab_size:
            raise JobError(f"A token id lies outside the vocabulary of {vocab_size}.")
        if not _ROLES.issuperset(self.roles) or self.kind not in _KINDS:
            raise JobError("A role or the kind of a canvas request is none that there is.")
        if not 0 <= self.stability <= MAX_STABILITY:
            raise JobError(
                f"stability is {self.stability}; this engine takes 0 to {MAX_STABILITY}."
            )
        if not 0 < self.t_min <= self.t_max:
            raise JobError("Temperatures need 0 < t_min <= t_max.")


def read_request(
    args: Mapping[str, Any] | None, canvas_length: int, vocab_size: int
) -> CanvasRequest | None:
    """The request in `extra_args`, None where they hold none.

    Whatever comes from outside must not stop the engine, so one that cannot be run is replaced by
    one that ends at once and says so.
    """
    try:
        request = CanvasRequest.from_args(args)
        if request is not None:
            request.check(canvas_length, vocab_size)
    except JobError:
        return CanvasRequest([0], [Role.PIN], kind=Kind.SCORE, max_steps=1, refused=1)
    return request


def plain_request(generation: Mapping[str, Any], canvas_length: int, seed: int) -> CanvasRequest:
    """What a request without a canvas of its own denoises: open blocks until vLLM ends it."""
    sampler: Mapping[str, Any] = generation.get("sampler_config") or {}
    return CanvasRequest(
        [0] * canvas_length,
        [Role.HOLE] * canvas_length,
        rule=Rule.ENTROPY_BOUND,
        max_steps=generation.get("max_denoising_steps", 48),
        entropy_bound=sampler.get("entropy_bound", 0.1),
        confidence=generation.get("confidence_threshold", 0.005),
        stability=generation.get("stability_threshold", 1),
        t_min=generation.get("t_min", 0.4),
        t_max=generation.get("t_max", 0.8),
        seed=seed,
        blocks=NO_END,
        text_only=0,
    )


def canvas_request(job: CanvasJob, canvas: list[int], roles: bytes, seed: int) -> CanvasRequest:
    """One row of a job."""
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
        single_line=int(job.single_line),
        may_end=int(job.may_end),
        text_only=int(job.text_only),
    )


def score_request(ids: list[int]) -> CanvasRequest:
    """Log-probabilities of ids[1:], each after all before it."""
    return CanvasRequest(
        ids, [Role.PIN] * len(ids), kind=Kind.SCORE, max_steps=1, text_only=0
    )  # fmt: skip


def greedy_request(job: CanvasJob, last: int, limit: int) -> CanvasRequest:
    """The causal continuation behind `last`, at most `limit` tokens."""
    return CanvasRequest(
        [last], [Role.PIN], kind=Kind.GREEDY, max_steps=limit,
        single_line=int(job.single_line), text_only=int(job.text_only),
    )  # fmt: skip
