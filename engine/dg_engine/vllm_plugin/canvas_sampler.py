"""One step of a mixed batch on the device: prompts, canvases, commits, scores, greedy lines.

The mathematics is that of dg_engine.sampler, row by row, and tests hold it to that. There is no
loop over requests, and nothing is read back to the host. What is as wide as the vocabulary is done
here, on the flat rows of logits, by the kernels or by their references; what follows from it for
the requests in progress.py.
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
from dg_engine.sampler import Vocabulary
from dg_engine.vllm_plugin.draws import candidate_seeds
from dg_engine.vllm_plugin.progress import Batch, Outcome, Progress, Rows
from dg_engine.vllm_plugin.states import CanvasStates, Phase, Real, Whole

ROWS_PER_PASS = 1024
"""Rows whose probabilities are held at once; in float32 they take 1 GiB at 262,144 tokens."""


class Embedding(NamedTuple):
    """The model's embedding, scaled; each gives [rows, hidden]."""

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
        self._progress = Progress(states, vocabulary)
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
            return self._progress.begin(batch)
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
        """Take as much memory as a full batch does, compile what `step` may need, change nothing.

        logits [any, vocab].
        """
        states, device = self._states, self._states.device
        slots, width = states.ids.shape
        before = states.copied()
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
        states.put_back(before)

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
        return self._progress.advance(batch, Rows(*by_slot), asked.requests, asked.of_row)

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
