"""What one forward's rows make of the requests of a batch: drafts, next inputs, next phases.

The mathematics is that of dg_engine.sampler with rules per request, on padded [requests, canvas]
tensors. Nothing is read back to the host.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dg_engine.job import Role
from dg_engine.sampler import Vocabulary, accept_entropy_bound, accept_top_k
from dg_engine.vllm_plugin.drafts import Code
from dg_engine.vllm_plugin.draws import noise_ids
from dg_engine.vllm_plugin.request import NO_END
from dg_engine.vllm_plugin.states import CanvasStates, Phase, Real, Whole


class Batch(NamedTuple):
    """The requests of a step, `n` of them, and the rows of their logits, `rows` in all."""

    slots: Tensor
    """int64 [n]"""
    scheduled: Tensor
    """Rows of logits per request, 0 while its prompt is read; int64 [n]."""
    prefilled: Tensor
    """Whether the request's prompt ends in this step, bool [n]."""
    row_slots: Tensor
    """int64 [rows]"""
    row_positions: Tensor
    """Canvas position of each row, int64 [rows]."""
    draws_candidates: bool
    """Whether any request has a rule that draws candidates."""
    conditions: bool
    """Whether any request may take a second step."""


class Outcome(NamedTuple):
    """What a step found."""

    emitted: Tensor
    """Ids of the committed canvases, int64 [n, canvas]."""
    emitted_counts: Tensor
    """How many of them are new tokens of the request, int64 [n]."""
    next_ids: Tensor
    """Input of the next forward, int64 [n, canvas]."""
    row_ids: Tensor
    """The draft, by row [rows]."""
    row_entropy: Tensor
    """Nats, float32 [rows]."""
    row_scores: Tensor
    """See Draft.scores, float32 [rows]."""
    row_steps: Tensor
    """Step of the row's request, int64 [rows]."""
    row_codes: Tensor
    """Code of the row's request, -1 where it took no step [rows]."""
    row_settled: Tensor
    """Settled positions of the row's request [rows]."""


class Rows(NamedTuple):
    """Per position of each request [n, canvas]."""

    likeliest: Tensor
    candidate: Tensor
    entropy: Tensor
    score: Tensor


class _Now(NamedTuple):
    """The state of the batch's requests before the step."""

    whole: Tensor
    real: Tensor
    ids: Tensor
    given: Tensor
    roles: Tensor

    def column(self, column: Whole) -> Tensor:
        """One whole number of each request [n]."""
        return self.whole[:, column]


class _Denoised(NamedTuple):
    """What a denoise step would make of each request; meant only for those that denoise."""

    next_ids: Tensor
    argmax: Tensor
    certainty: Tensor
    converged: Tensor
    settled: Tensor


class Progress:
    """Advances CanvasStates, request by request."""

    def __init__(self, states: CanvasStates, vocabulary: Vocabulary) -> None:
        self._states = states
        self._vocabulary = vocabulary
        self._positions = torch.arange(states.canvas_length, device=states.device)

    def begin(self, batch: Batch) -> Outcome:
        """A step without rows: a request whose prompt ends here goes over to its first phase.

        Everything else is as `add` has left it.
        """
        states, slots = self._states, batch.slots
        whole, ids = states.whole[slots], states.ids[slots]
        first = whole[:, Whole.FIRST_PHASE]
        whole[:, Whole.PHASE] = torch.where(batch.prefilled, first, whole[:, Whole.PHASE])
        states.whole[slots] = whole
        none = first[:0]
        return Outcome(ids, torch.zeros_like(first), ids, none, none, none, none, none, none)

    def advance(self, batch: Batch, rows: Rows, running: Tensor, of_row: Tensor) -> Outcome:
        """Accept, renoise, settle and change phases; `rows` are [n, canvas] here."""
        states, slots = self._states, batch.slots
        now = _Now(
            states.whole[slots], states.real[slots], states.ids[slots], states.given[slots],
            states.roles[slots],
        )  # fmt: skip
        phase, width = now.column(Whole.PHASE), now.column(Whole.WIDTH)
        denoising = running & (phase == int(Phase.DENOISE))
        committing = running & (phase == int(Phase.COMMIT))
        greedy = running & (phase == int(Phase.GREEDY))
        found = self._denoise(slots, now, rows)
        code = self._codes(now, found, rows, running)
        token = rows.likeliest[:, 0]

        states.argmax[slots] = _where(denoising, found.argmax, states.argmax[slots])
        newest, older = states.history[:1, slots], states.history[:-1, slots]
        states.history[1:, slots] = _where(denoising, older, states.history[1:, slots])
        states.history[:1, slots] = _where(denoising, found.argmax[None], newest)
        commits = (code == int(Code.BLOCK_CONVERGED)) | (code == int(Code.BLOCK_MAX_STEPS))
        next_ids = _where(denoising, found.next_ids, now.ids)
        next_ids = _where(commits, found.argmax, next_ids)
        next_ids = _where(greedy, torch.where(self._positions == 0, token[:, None], 0), next_ids)
        steps = now.column(Whole.STEP) + running
        next_ids = self._change_phase(batch, now, steps, code, committing, next_ids)

        positions = batch.row_positions
        shown = _where(greedy, rows.likeliest, found.argmax)
        return Outcome(
            now.ids,
            torch.where(committing | greedy, width, 0),
            next_ids,
            shown[of_row, positions],
            found.certainty[of_row, positions],
            rows.score[of_row, positions],
            steps[of_row],
            code[of_row],
            torch.where(denoising, found.settled, 0)[of_row],
        )

    def _denoise(self, slots: Tensor, now: _Now, rows: Rows) -> _Denoised:
        """dg_engine.sampler.denoise_step with rules per request."""
        inside = self._positions < now.column(Whole.WIDTH)[:, None]
        free = (now.roles != int(Role.PIN)) & inside
        certainty = rows.entropy.masked_fill(~free, 0.0)
        argmax = torch.where(free, rows.likeliest, now.given)
        step, max_steps = now.column(Whole.STEP), now.column(Whole.MAX_STEPS)
        top_k = now.column(Whole.TOP_K) > 0
        bound = now.real[:, Real.ENTROPY_BOUND, None].float()
        share = accept_top_k(certainty, free, step[:, None] + 1, max_steps[:, None].clamp_min(1))
        accepted = _where(top_k, share, accept_entropy_bound(certainty, free, bound))
        kept = (now.roles == int(Role.SEED)) & (step < now.column(Whole.KEEP_SEED_STEPS))[:, None]
        renoised = torch.where(kept, now.ids, self._noise(now.whole, step + 1))
        next_ids = torch.where(accepted, _where(top_k, argmax, rows.candidate), renoised)

        wanted = self._wanted(argmax, free, now.whole)
        stable = torch.ones_like(top_k)
        for age, draft in enumerate(self._states.history[:, slots]):
            same = ((draft == argmax) | ~wanted).all(-1)
            stable = stable & (same | (age >= now.column(Whole.STABILITY)))
        mean = (certainty * wanted).sum(-1) / wanted.sum(-1).clamp_min(1)
        sure = mean < now.real[:, Real.CONFIDENCE].float()
        before = _where(step > 0, self._states.argmax[slots], now.ids)
        return _Denoised(
            torch.where(free, next_ids, now.given),
            argmax,
            certainty,
            (stable & sure) | ~wanted.any(-1),
            ((argmax == before) & free).sum(-1),
        )

    def _codes(self, now: _Now, found: _Denoised, rows: Rows, running: Tensor) -> Tensor:
        """Code per request, -1 where it took no step [n]."""
        phase, step, max_steps, blocks = (
            now.column(column)
            for column in (Whole.PHASE, Whole.STEP, Whole.MAX_STEPS, Whole.BLOCKS)
        )
        denoising, greedy = (
            running & (phase == int(Phase.DENOISE)),
            running & (phase == int(Phase.GREEDY)),
        )
        spent = step + 1 >= max_steps
        ended = denoising & (found.converged | spent)
        eos, line_break = self._vocabulary
        behind = self._positions >= now.column(Whole.START)[:, None]
        behind = behind & (self._positions < now.column(Whole.WIDTH)[:, None])
        last = (blocks == 1) | ((blocks != NO_END) & (eos[found.argmax] & behind).any(-1))
        token = rows.likeliest[:, 0]
        line_ended = eos[token] | (line_break[token] & (now.column(Whole.LINE_ENDS) > 0))
        code = torch.full_like(step, -1)
        for mask, value in (
            (denoising | greedy, Code.GOES_ON),
            (ended & ~last, Code.BLOCK_MAX_STEPS),
            (ended & ~last & found.converged, Code.BLOCK_CONVERGED),
            (ended & last, Code.MAX_STEPS),
            (ended & last & found.converged, Code.CONVERGED),
            (running & (phase == int(Phase.SCORE)), Code.CONVERGED),
            (greedy & spent, Code.MAX_STEPS),
            (greedy & line_ended, Code.CONVERGED),
            (greedy & (max_steps == 0), Code.LOST),
        ):
            code = code.masked_fill(mask, int(value))
        return code

    def _change_phase(
        self,
        batch: Batch,
        now: _Now,
        steps: Tensor,
        code: Tensor,
        committing: Tensor,
        next_ids: Tensor,
    ) -> Tensor:
        """Write the state that the next forward finds; an open block follows a committed one.

        Returns the ids that it reads [n, canvas].
        """
        states, slots = self._states, batch.slots
        commits = (code == int(Code.BLOCK_CONVERGED)) | (code == int(Code.BLOCK_MAX_STEPS))
        finished = (
            (code == int(Code.CONVERGED)) | (code == int(Code.MAX_STEPS)) | (code == int(Code.LOST))
        )
        phase = now.column(Whole.PHASE)
        phase = phase.masked_fill(commits, int(Phase.COMMIT))
        phase = phase.masked_fill(committing, int(Phase.DENOISE))
        phase = phase.masked_fill(finished, int(Phase.FINISHED))
        phase = torch.where(batch.prefilled, now.column(Whole.FIRST_PHASE), phase)
        blocks = now.column(Whole.BLOCKS)
        whole = now.whole.clone()
        whole[:, Whole.PHASE] = phase
        whole[:, Whole.STEP] = steps.masked_fill(committing, 0)
        whole[:, Whole.WIDTH] = now.column(Whole.WIDTH).masked_fill(
            committing, states.canvas_length
        )
        whole[:, Whole.START] = now.column(Whole.START).masked_fill(committing, 0)
        whole[:, Whole.BLOCKS] = torch.where(committing & (blocks != NO_END), blocks - 1, blocks)
        given = now.given.masked_fill(committing[:, None], 0)
        roles = now.roles.masked_fill(committing[:, None], int(Role.HOLE))
        # A request whose prompt ends here reads what `add` has left it.
        noise = self._noise(whole, torch.zeros_like(steps))
        inputs = _where(committing, torch.where(roles == int(Role.HOLE), noise, given), next_ids)
        states.whole[slots], states.given[slots], states.roles[slots] = whole, given, roles
        states.ids[slots] = inputs
        states.history[:, slots] = _where(
            committing, torch.full_like(now.ids, -1), states.history[:, slots]
        )
        restarts = (committing | commits)[:, None, None]
        states.conditioning[slots] = states.conditioning[slots].masked_fill(restarts, 0.0)
        return inputs

    def _noise(self, whole: Tensor, counter: Tensor) -> Tensor:
        offsets = self._positions - whole[:, Whole.START, None]
        vocab_size = len(self._vocabulary.eos)
        return noise_ids(whole[:, Whole.SEED, None], counter[:, None], offsets, vocab_size)

    def _wanted(self, argmax: Tensor, free: Tensor, whole: Tensor) -> Tensor:
        """dg_engine.sampler.wanted_region with a stop rule per request."""
        limit = whole[:, Whole.LINES, None]
        ends = (self._vocabulary.eos[argmax] & free).cumsum(-1)
        breaks = (self._vocabulary.line_break[argmax] & free).cumsum(-1)
        count = torch.where(limit > 0, breaks + limit * ends, ends)
        before = torch.nn.functional.pad(count, (1, 0))[..., :-1]
        stops = whole[:, Whole.STOPS, None] > 0
        return free & (~stops | (before < limit.clamp_min(1)))


def _where(mask: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """torch.where with one flag per request [n] over [..., n, canvas]."""
    return torch.where(mask[:, None], yes, no)
