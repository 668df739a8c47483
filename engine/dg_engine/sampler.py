"""The reference sampler: uniform-state block diffusion over canvases, in plain PyTorch.

This is the truth that every faster path is held to. The published rules are those of
DiffusionGemma (entropy bound: arXiv 2505.24857); pins, kept seeds, wanted regions and the top-k
schedule are ours. Functions are pure: randomness comes from `Draws`, time from the caller.

Shapes: `rows` canvases of `canvas` positions, `vocab` token ids. A position is *free* unless
it is pinned; pins leave the entropy budget, the mean entropy and the stability test.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from dg_engine.job import Role, Rule, Stop, StopKind


class Draws(Protocol):
    """Where randomness comes from; tests replace it to repeat another sampler's draws."""

    def noise(self, rows: int, canvas: int) -> Tensor:
        """Fresh uniform token ids, int64 [rows, canvas]."""
        ...

    def candidates(self, logits: Tensor) -> Tensor:
        """One sample per position from softmax(logits), int64 [rows, canvas]."""
        ...


class SeededDraws:
    """Draws from one generator per row, so a row's result does not depend on its batch."""

    def __init__(self, seeds: list[int], vocab_size: int, device: torch.device) -> None:
        self._generators = [torch.Generator(device=device).manual_seed(seed) for seed in seeds]
        self._vocab_size = vocab_size
        self._device = device

    def noise(self, rows: int, canvas: int) -> Tensor:
        """Uniform ids over the whole vocabulary, as the published sampler draws them."""
        return torch.stack(
            [
                torch.randint(self._vocab_size, (canvas,), generator=g, device=self._device)
                for g in self._generators[:rows]
            ]
        )

    def candidates(self, logits: Tensor) -> Tensor:
        """Gumbel-max: argmax of logits - log(-log u)."""
        uniform = torch.stack(
            [
                torch.rand(logits.shape[1:], generator=g, device=self._device)
                for g in self._generators[: logits.shape[0]]
            ]
        )
        tiny = torch.finfo(torch.float32).tiny
        exponential = (-torch.log(uniform.clamp_min(tiny))).clamp_min(tiny)
        return (logits - torch.log(exponential)).argmax(-1)


class Rules(NamedTuple):
    """What a job says of its sampling; see CanvasJob for the fields."""

    rule: Rule = Rule.ENTROPY_BOUND
    max_steps: int = 48
    entropy_bound: float = 0.1
    confidence: float = 0.005
    stability: int = 1
    t_min: float = 0.4
    t_max: float = 0.8
    keep_seed_steps: int = 0
    stop: Stop = Stop()


class Vocabulary(NamedTuple):
    """Sets of token ids as bool masks, each [vocab]."""

    eos: Tensor
    line_break: Tensor


class Canvases(NamedTuple):
    """The state between two denoise steps."""

    ids: Tensor
    """Input of the next forward, int64 [rows, canvas]."""
    argmax: Tensor
    """Draft after the last step with its pins in place, int64 [rows, canvas]."""
    history: Tensor
    """The last `stability` drafts, oldest first, -1 before there are any
    [stability, rows, canvas]."""
    done: Tensor
    """Rows that have converged, bool [rows]."""
    step: int
    """Denoise steps taken."""


class Step(NamedTuple):
    """What one denoise step found, for frames and tests."""

    state: Canvases
    processed: Tensor
    """Tempered logits, the next step's self-conditioning [rows, canvas, vocab]."""
    entropy: Tensor
    """Nats [rows, canvas], 0 at pins."""
    accepted: Tensor
    """Bool [rows, canvas], False at pins."""
    wanted: Tensor
    """Free positions that must settle, bool [rows, canvas]."""


def temperature(remaining: int, rules: Rules) -> float:
    """Linear schedule of the job's own length: t_max before the first step, towards t_min."""
    return rules.t_min + (rules.t_max - rules.t_min) * remaining / rules.max_steps


def entropy(logits: Tensor) -> Tensor:
    """Shannon entropy in nats of softmax(logits) [..., vocab] -> [...]; -inf logits weigh 0."""
    log_probabilities = torch.log_softmax(logits, -1)
    weighted = log_probabilities.exp() * log_probabilities
    return -weighted.masked_fill(log_probabilities.isinf(), 0.0).sum(-1)


def accept_entropy_bound(position_entropy: Tensor, free: Tensor, bound: float | Tensor) -> Tensor:
    """Accept free positions, most certain first, while the sum of those before stays in bound.

    position_entropy float [rows, canvas], free bool [rows, canvas] -> bool [rows, canvas]; a bound
    per row is [rows, 1].
    """
    budgeted = position_entropy.masked_fill(~free, math.inf)
    rank = _rank(budgeted)
    ordered = torch.zeros_like(budgeted).scatter(-1, rank, budgeted)
    before = torch.cumsum(ordered.masked_fill(ordered.isinf(), 0.0), -1) - ordered
    chosen = (before <= bound) & ~ordered.isinf()
    return chosen.gather(-1, rank)


def accept_top_k(
    position_entropy: Tensor, free: Tensor, step: int | Tensor, max_steps: int | Tensor
) -> Tensor:
    """Accept the ceil(n * step / max_steps) most certain of n free positions; step counts from 1.

    position_entropy float [rows, canvas], free bool [rows, canvas] -> bool [rows, canvas]; a step
    and a cap per row are int64 [rows, 1].
    """
    budgeted = position_entropy.masked_fill(~free, math.inf)
    rank = _rank(budgeted)
    count = -(-free.sum(-1, keepdim=True) * step // max_steps)
    return (rank < count) & free


def _rank(values: Tensor) -> Tensor:
    """Place of each value in ascending order, equal ones as they come; [rows, n] -> int64.

    By comparing all with all: a canvas is short, and on a GPU a sort of one row takes ten times as
    long.
    """
    mine, other = values[..., :, None], values[..., None, :]
    index = torch.arange(values.shape[-1], device=values.device)
    before = (other < mine) | ((other == mine) & (index[None, :] < index[:, None]))
    return before.sum(-1)


def wanted_region(argmax: Tensor, free: Tensor, stop: Stop, vocabulary: Vocabulary) -> Tensor:
    """Free positions that must settle: all, or those up to the first end or n-th line break.

    argmax int64 [rows, canvas], free bool [rows, canvas] -> bool [rows, canvas]. The position
    that ends the region belongs to it; an end token ends every region but WHOLE.
    """
    if stop.kind is StopKind.WHOLE:
        return free
    ends = vocabulary.eos[argmax] & free
    if stop.kind is StopKind.FIRST_EOS:
        count = ends.cumsum(-1)
        limit = 1
    else:
        limit = 1 if stop.kind is StopKind.FIRST_LINE else stop.lines
        breaks = vocabulary.line_break[argmax] & free
        count = breaks.cumsum(-1) + limit * ends.cumsum(-1)
    before = torch.nn.functional.pad(count, (1, 0))[..., :-1]
    return free & (before < limit)


def start(given: Tensor, roles: Tensor, draws: Draws, *, stability: int) -> Canvases:
    """The first canvases: pins and seeds as given, noise in the holes.

    given int64 [rows, canvas], roles uint8 [rows, canvas] (see Role).
    """
    rows, width = given.shape
    ids = torch.where(roles == Role.HOLE, draws.noise(rows, width), given)
    history = torch.full((max(stability, 0), rows, width), -1, dtype=ids.dtype, device=ids.device)
    done = torch.zeros(rows, dtype=torch.bool, device=ids.device)
    return Canvases(ids, ids, history, done, 0)


def denoise_step(
    state: Canvases,
    logits: Tensor,
    given: Tensor,
    roles: Tensor,
    rules: Rules,
    draws: Draws,
    vocabulary: Vocabulary,
    *,
    banned: Tensor | None = None,
) -> Step:
    """One step from the logits of a forward on `state.ids` to the next canvases.

    Args:
        state: what the last step (or `start`) left.
        logits: after the softcap, float [rows, canvas, vocab].
        given, roles: the job's ids and roles, [rows, canvas].
        rules: the job's sampling.
        draws: candidates and fresh noise.
        vocabulary: for the wanted region.
        banned: tokens that are never proposed, bool [vocab].

    Rows that were done stay as they were (as in transformers' generate).
    """
    pinned = roles == Role.PIN
    free = ~pinned
    remaining = rules.max_steps - state.step
    processed = logits.float()
    if banned is not None:
        processed = processed.masked_fill(banned, -math.inf)
    processed = processed / temperature(remaining, rules)
    position_entropy = entropy(processed).masked_fill(pinned, 0.0)
    argmax = torch.where(pinned, given, processed.argmax(-1))
    if rules.rule is Rule.ENTROPY_BOUND:
        accepted = accept_entropy_bound(position_entropy, free, rules.entropy_bound)
        candidates = draws.candidates(processed)
    else:
        accepted = accept_top_k(position_entropy, free, state.step + 1, rules.max_steps)
        candidates = argmax
    fresh = draws.noise(*argmax.shape)
    kept = (roles == Role.SEED) & (state.step < rules.keep_seed_steps)
    ids = torch.where(accepted, candidates, torch.where(kept, state.ids, fresh))
    ids = torch.where(pinned, given, ids)

    frozen = state.done[:, None]
    argmax = torch.where(frozen, state.argmax, argmax)
    ids = torch.where(frozen, state.ids, ids)
    wanted = wanted_region(argmax, free, rules.stop, vocabulary)
    stable = ((state.history == argmax) | ~wanted).all(-1).all(0)
    mean_entropy = (position_entropy * wanted).sum(-1) / wanted.sum(-1).clamp_min(1)
    done = state.done | (stable & (mean_entropy < rules.confidence)) | ~wanted.any(-1)
    history = torch.cat((state.history, argmax[None]))[1:] if len(state.history) else state.history
    return Step(
        Canvases(ids, argmax, history, done, state.step + 1),
        processed,
        position_entropy,
        accepted,
        wanted,
    )
