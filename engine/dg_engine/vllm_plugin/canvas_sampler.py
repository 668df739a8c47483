"""One step of a mixed batch on the device: prompts, canvases, commits, scores, greedy lines.

The mathematics is that of dg_engine.sampler, row by row, and tests hold it to that. There is no
loop over requests, and nothing is read back to the host. What is as wide as the vocabulary is done
on the flat rows of logits, by the kernels or by their references; what is as wide as a canvas on
padded [requests, canvas] tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
import torch.fx.experimental._config
from dg_kernels import reference
from torch import Tensor

from dg_engine.job import Role
from dg_engine.sampler import Vocabulary, accept_entropy_bound, accept_top_k
from dg_engine.vllm_plugin.drafts import Code
from dg_engine.vllm_plugin.draws import candidate_seeds, noise_ids
from dg_engine.vllm_plugin.request import NO_END
from dg_engine.vllm_plugin.states import CanvasStates, Phase, Real, Whole

ROWS_PER_PASS = 1024
"""Rows whose probabilities are held at once; in float32 they take 1 GiB at 262,144 tokens."""


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


class Embedding(NamedTuple):
    """The model's embedding, scaled; both give [rows, hidden]."""

    of_ids: Callable[[Tensor], Tensor]
    """From int64 [rows]."""
    of_probabilities: Callable[[Tensor], Tensor]
    """From float32 [rows, vocab]."""
    of_tops: Callable[[Tensor, Tensor], Tensor]
    """From the likeliest tokens' tempered logits and ids, each [rows, k]; see
    dg_kernels.reference.soft_embedding."""


class _Asked(NamedTuple):
    """What the rows of logits are read with, each [rows] but the first."""

    requests: Tensor
    """Whether the request takes this step [n]."""
    running: Tensor
    """Whether the row's request takes this step."""
    of_row: Tensor
    """Place of the row's request in the batch."""
    temperature: Tensor
    bans: Tensor
    seeds: Tensor
    given: Tensor


class _Found(NamedTuple):
    """What reading them found, each [rows]."""

    likeliest: Tensor
    candidate: Tensor
    entropy: Tensor
    log_sum_exp: Tensor


class _Parts(NamedTuple):
    """The small operations of a step, around those that read whole rows."""

    before: Callable[[Batch], _Asked]
    condition: Callable[[Batch, Tensor, Tensor, Tensor], None]
    after: Callable[[Tensor, Batch, _Asked, _Found], Outcome]


class _Rows(NamedTuple):
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


class CanvasSampler:
    """Advances CanvasStates by one forward's logits."""

    def __init__(
        self,
        states: CanvasStates,
        vocabulary: Vocabulary,
        special: Tensor,
        embedding: Embedding,
        *,
        softcap: float = 0.0,
        conditioning_top_k: int = 0,
        row_stats: Callable[..., reference.RowStats] = reference.row_stats,
        rows_per_pass: int = ROWS_PER_PASS,
    ) -> None:
        """Over `states` and a model's vocabulary.

        Args:
            states: of the requests.
            vocabulary: end tokens and line breaks.
            special: ids that text never holds, bool [vocab]; end tokens are not among them.
            embedding: of the model, for self-conditioning.
            softcap: that `step`'s logits still lack, 0 for none.
            conditioning_top_k: likeliest tokens that a position is conditioned on, 1 to 64; 0 takes
                all of the vocabulary, as the published model does.
            row_stats: dg_kernels' reference, or the kernel on a GPU.
            rows_per_pass: see ROWS_PER_PASS.
        """
        self._states = states
        self._vocabulary = vocabulary
        columns = {
            Whole.BAN_SPECIAL: special & ~vocabulary.eos,
            Whole.BAN_LINES: vocabulary.line_break,
            Whole.BAN_ENDS: vocabulary.eos,
        }
        bits = [2**bit for bit in range(len(columns))]
        self._classes = sum(
            (mask.to(torch.uint8) * bit for mask, bit in zip(columns.values(), bits, strict=True)),
            torch.zeros_like(special, dtype=torch.uint8),
        )
        """Bit sets of what a token is, see row_stats [vocab]."""
        self._ban_columns = torch.tensor(list(columns), device=states.device)
        self._ban_bits = torch.tensor(bits, device=states.device)
        self._embedding = embedding
        self._softcap = softcap
        self._top_k = conditioning_top_k
        self._row_stats = row_stats
        self._rows_per_pass = rows_per_pass
        self._positions = torch.arange(states.canvas_length, device=states.device)
        self._eager = _Parts(self._before, self._condition, self._after)
        self._compiled: _Parts | None = None

    def compile(self, backend: str = "inductor") -> None:
        """Let PyTorch join what is small into few launches; `rehearse` compiles every variant.

        One request and several are two variants. Steps without rows and a lone greedy line's are
        left as they are: they would be two more, for one forward a job.
        """
        compiled = cast("Callable[..., Any]", vars(torch)["compile"])  # partly untyped
        self._compiled = _Parts(
            *(compiled(part, dynamic=True, backend=backend) for part in self._eager)
        )

    def leave_eager(self) -> None:
        """Take `compile` back."""
        self._compiled = None

    def step(self, logits: Tensor, batch: Batch) -> Outcome:
        """Advance every request of the batch by its rows of logits [rows, vocab]."""
        if len(logits) == 0:
            return self._begin(batch)
        parts = self._compiled if self._compiled and len(logits) > 1 else self._eager
        asked = parts.before(batch)
        stats = self._row_stats(
            logits,
            asked.temperature,
            softcap=self._softcap,
            seeds=asked.seeds if batch.draws_candidates else None,
            classes=self._classes,
            bans=asked.bans,
            active=asked.running,
            top_k=self._top_k if batch.conditions else 0,
        )
        if batch.conditions:
            soft = self._soft_embeddings(logits, asked, stats)
            parts.condition(batch, asked.running, soft, self._embedding.of_ids(asked.given))
        candidate = stats.argmax.clone() if stats.sample is None else stats.sample
        found = _Found(stats.argmax, candidate, stats.entropy, stats.log_sum_exp)
        return parts.after(logits, batch, asked, found)

    def rehearse(self, logits: Tensor) -> None:
        """Take as much memory as a full batch does, and compile what `step` may need.

        Only while there are no requests: their states are overwritten. logits [any, vocab].
        """
        states, device = self._states, self._states.device
        slots, width = states.ids.shape
        # Sizes that happen to be equal now need not be so later.
        sizes: Any = torch.fx.experimental._config
        with sizes.patch(use_duck_shape=False):
            for count in {1, slots}:
                which = torch.arange(count, device=device)
                rows = torch.arange(count * width, device=device)
                full = logits[:1].repeat(count * width, 1)
                scheduled = torch.full_like(which, width)
                for draws, conditions in itertools.product((True, False), repeat=2):
                    batch = Batch(
                        which, scheduled, which < 0, rows // width, rows % width, draws, conditions
                    )  # fmt: skip
                    self.step(full, batch)
        for slot in range(slots):
            states.remove(slot)

    def _begin(self, batch: Batch) -> Outcome:
        """A step without rows: a request whose prompt ends here goes over to its first phase.

        What `add` has cleared needs no clearing, so this is a part of what `_after` does.
        """
        states, slots = self._states, batch.slots
        whole, given = states.whole[slots], states.given[slots]
        first = whole[:, Whole.FIRST_PHASE]
        holes = (states.roles[slots] == int(Role.HOLE)) & (first == int(Phase.DENOISE))[:, None]
        start = torch.where(holes, self._noise(whole, torch.zeros_like(first)), given)
        ids = _where(batch.prefilled, start, states.ids[slots])
        whole[:, Whole.PHASE] = torch.where(batch.prefilled, first, whole[:, Whole.PHASE])
        whole[:, Whole.STEP] = whole[:, Whole.STEP].masked_fill(batch.prefilled, 0)
        states.whole[slots], states.ids[slots] = whole, ids
        none = first[:0]
        return Outcome(ids, torch.zeros_like(first), ids, none, none, none, none, none, none)

    def _before(self, batch: Batch) -> _Asked:
        """What the batch's rows of logits are read with."""
        states, slots, positions = self._states, batch.row_slots, batch.row_positions
        # With asynchronous scheduling a forward may come that a request no longer wants.
        running = (batch.scheduled > 0) & (
            batch.scheduled == states.whole[batch.slots, Whole.WIDTH]
        )
        place = torch.zeros(len(states.whole), dtype=torch.int64, device=states.device)
        place[batch.slots] = torch.arange(len(batch.slots), device=states.device)
        of_row = place[slots]
        whole, real = states.whole[slots], states.real[slots]
        phase, step, max_steps = (whole[:, c] for c in (Whole.PHASE, Whole.STEP, Whole.MAX_STEPS))
        span = real[:, Real.T_MAX] - real[:, Real.T_MIN]
        tempered = real[:, Real.T_MIN] + span * (max_steps - step) / max_steps.clamp_min(1)
        bans = ((whole[:, self._ban_columns] > 0) * self._ban_bits).sum(-1)
        return _Asked(
            running,
            running[of_row],
            of_row,
            torch.where(phase == int(Phase.DENOISE), tempered, 1.0).float(),
            bans.to(torch.uint8),
            candidate_seeds(whole[:, Whole.SEED], step, positions - whole[:, Whole.START]),
            states.given[slots, positions],
        )

    def _condition(self, batch: Batch, running: Tensor, soft: Tensor, own: Tensor) -> None:
        """Keep the next step's self-conditioning: what a row says, or its pin [rows, hidden]."""
        states, slots, positions = self._states, batch.row_slots, batch.row_positions
        kept = states.conditioning[slots, positions]
        pinned = states.roles[slots, positions] == int(Role.PIN)
        mixed = torch.where(pinned[:, None], own, soft).to(kept.dtype)
        states.conditioning[slots, positions] = torch.where(running[:, None], mixed, kept)

    def _after(self, logits: Tensor, batch: Batch, asked: _Asked, found: _Found) -> Outcome:
        """What the rows' statistics make of the batch's requests."""
        states, slots, positions = self._states, batch.row_slots, batch.row_positions
        phase = states.whole[slots, Whole.PHASE]
        pinned = states.roles[slots, positions] == int(Role.PIN)
        behind = (positions + 1).clamp_max(states.canvas_length - 1)
        taken = torch.where(pinned & (phase != int(Phase.GREEDY)), asked.given, found.likeliest)
        target = torch.where(phase == int(Phase.SCORE), states.given[slots, behind], taken)
        picked = logits.gather(-1, target[:, None])
        said = reference.tempered(picked, asked.temperature, softcap=self._softcap)[:, 0]
        said = said.masked_fill((self._classes[target] & asked.bans) != 0, -torch.inf)
        rows = (found.likeliest, found.candidate, found.entropy, said - found.log_sum_exp)
        shape = states.ids.shape
        by_slot = [
            torch.zeros(shape, dtype=values.dtype, device=values.device).index_put(
                (slots, positions), values
            )[batch.slots]
            for values in rows
        ]
        return self._advance(batch, _Rows(*by_slot), asked.requests, asked.of_row)

    def _soft_embeddings(self, logits: Tensor, asked: _Asked, stats: reference.RowStats) -> Tensor:
        """What each row says, as an embedding [rows, hidden]."""
        if self._top_k:
            return self._embedding.of_tops(stats.top_logits, stats.top_ids)
        parts = [
            self._embedding.of_probabilities(
                torch.softmax(
                    reference.tempered(
                        logits[part], asked.temperature[part], softcap=self._softcap,
                        classes=self._classes, bans=asked.bans[part],
                    ),
                    -1,
                )
            )
            for begin in range(0, max(1, logits.shape[0]), self._rows_per_pass)
            for part in [slice(begin, begin + self._rows_per_pass)]
        ]  # fmt: skip
        return torch.cat(parts)

    def _advance(self, batch: Batch, rows: _Rows, running: Tensor, of_row: Tensor) -> Outcome:
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

    def _denoise(self, slots: Tensor, now: _Now, rows: _Rows) -> _Denoised:
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

    def _codes(self, now: _Now, found: _Denoised, rows: _Rows, running: Tensor) -> Tensor:
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
        whole[:, Whole.STEP] = steps.masked_fill(committing | batch.prefilled, 0)
        whole[:, Whole.WIDTH] = now.column(Whole.WIDTH).masked_fill(
            committing, states.canvas_length
        )
        whole[:, Whole.START] = now.column(Whole.START).masked_fill(committing, 0)
        whole[:, Whole.BLOCKS] = torch.where(committing & (blocks != NO_END), blocks - 1, blocks)
        given = now.given.masked_fill(committing[:, None], 0)
        roles = now.roles.masked_fill(committing[:, None], int(Role.HOLE))
        begins = committing | (batch.prefilled & (phase == int(Phase.DENOISE)))
        noise = self._noise(whole, torch.zeros_like(steps))
        inputs = _where(begins, torch.where(roles == int(Role.HOLE), noise, given), next_ids)
        inputs = _where(batch.prefilled & ~begins, given, inputs)
        states.whole[slots], states.given[slots], states.roles[slots] = whole, given, roles
        states.ids[slots] = inputs
        states.history[:, slots] = _where(
            begins, torch.full_like(now.ids, -1), states.history[:, slots]
        )
        restarts = (begins | commits)[:, None, None]
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
