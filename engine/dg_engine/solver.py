"""Solves one canvas job on a model, one forward at a time.

`Solver.run` is a generator: between two forwards its caller decides who goes on, so a cancel
takes effect within one denoise step and a more urgent job can overtake.
"""

from __future__ import annotations

import enum
import math
import os
import time
from collections.abc import Callable, Generator
from typing import NamedTuple

import torch
from torch import Tensor

from dg_engine.answers import answer, free_count, tail_of
from dg_engine.candidates import Batch, Row, batch_of, rows_of
from dg_engine.causal import Candidate, greedy_candidate, judge_candidates
from dg_engine.job import CanvasJob, Done, DoneKind, Frame, JudgeKind, Role, Rule, check_job
from dg_engine.lists import float_rows, floats, int_rows, ints
from dg_engine.model import DenoiserModel, KeyValues
from dg_engine.prefix_cache import PrefixCache
from dg_engine.sampler import (
    Draws,
    Rules,
    SeededDraws,
    Step,
    Vocabulary,
    denoise_step,
    start,
)
from dg_engine.stopwatch import Stopwatch

ENCODE_CHUNK = 256
"""Prompt tokens per encoder pass, so that a cancel need not wait for a long prompt."""

DrawsFactory = Callable[[list[int]], Draws]


class PinConditioning(enum.StrEnum):
    """What a pinned position is conditioned on."""

    ONE_HOT = "one-hot"
    """Its own token's embedding: the model is as sure of it as we are."""
    ZERO = "zero"
    """Nothing, as on a first step."""


class Conditioning(NamedTuple):
    """What a denoise step is told of the one before it."""

    top_k: int = 0
    """Likeliest tokens that a free position is conditioned on; 0 for all, as published."""
    pins: PinConditioning = PinConditioning.ONE_HOT

    def of_pins(self, model: DenoiserModel, given: Tensor) -> Tensor:
        """The signal where every position is pinned: int64 [rows, canvas] -> [..., hidden]."""
        embedded = model.embed(given)
        return embedded if self.pins is PinConditioning.ONE_HOT else torch.zeros_like(embedded)

    def of_free(self, model: DenoiserModel, processed: Tensor) -> Tensor:
        """The signal of free positions from tempered logits: [..., vocab] -> [..., hidden].

        The mathematics are those of dg_kernels.reference.soft_embedding: the softmax is over the
        tokens that are kept.
        """
        if 0 < self.top_k < processed.shape[-1]:
            top = processed.topk(self.top_k, -1)
            processed = torch.full_like(processed, -math.inf).scatter(-1, top.indices, top.values)
        return model.soft_embedding(processed)


DEFAULT_CONDITIONING = Conditioning()


class Solver:
    """Runs jobs on one model; holds the prefix cache, otherwise no state between jobs."""

    def __init__(
        self,
        model: DenoiserModel,
        *,
        eos: frozenset[int],
        line_breaks: frozenset[int],
        special: frozenset[int],
        cache: PrefixCache,
        clock: Callable[[], float] = time.monotonic,
        fresh_seed: Callable[[], int] = lambda: int.from_bytes(os.urandom(6)),
        draws: DrawsFactory | None = None,
        conditioning: Conditioning = DEFAULT_CONDITIONING,
    ) -> None:
        self._model = model
        self._conditioning = conditioning
        self._cache = cache
        self._clock = clock
        self._fresh_seed = fresh_seed
        self._draws = draws or self._seeded
        self._eos = eos
        self._line_breaks = line_breaks
        self._special = special
        self._vocabulary = Vocabulary(self._mask(eos), self._mask(line_breaks))

    def forget(self) -> None:
        """Let go of all cached prompts."""
        self._cache.clear()

    def run(self, job: CanvasJob, submitted: float) -> Generator[Frame | None, None, None]:
        """Yield None or a frame after each forward; the last frame is `done`.

        `submitted` is the clock's time at submission, where the deadline counts from. Raises
        JobError before the first forward when the job cannot run.
        """
        config = self._model.config
        check_job(job, canvas_length=config.canvas_length, vocab_size=config.vocab_size)
        run = _Run(self, job, submitted)
        yield from run.solve()

    def _seeded(self, seeds: list[int]) -> Draws:
        return SeededDraws(seeds, self._model.config.vocab_size, self._model.device)

    def _mask(self, ids: frozenset[int]) -> Tensor:
        mask = torch.zeros(self._model.config.vocab_size, dtype=torch.bool)
        mask[[i for i in ids if i < len(mask)]] = True
        return mask.to(self._model.device)

    def banned(self, job: CanvasJob) -> Tensor | None:
        """Ids that are never proposed for this job, bool [vocab]."""
        ids = self._special - self._eos if job.text_only else frozenset[int]()
        if job.single_line:
            ids = ids | self._line_breaks
        if not job.may_end:
            ids = ids | self._eos
        return self._mask(ids) if ids else None

    def encode(
        self, job: CanvasJob, watch: Stopwatch
    ) -> Generator[None, None, tuple[Tensor, KeyValues, int, int]]:
        """Encode the prompt behind its longest cached start.

        Returns the last hidden state [hidden], keys and values, cached tokens and forwards.
        """
        reuse = self._cache.longest(job.prompt)
        past, at, forwards = reuse.past, reuse.length, 0
        hidden: Tensor | None = None
        try:
            while at < len(job.prompt):
                with watch.stage("encode"):
                    piece = job.prompt[at : at + ENCODE_CHUNK]
                    ids = torch.tensor(piece, device=self._model.device)
                    hidden, past = self._model.encode(ids, past)
                at += len(piece)
                forwards += 1
                if at < len(job.prompt):
                    yield None
        finally:
            # A job that is cancelled here leaves what it read to the next: where reading takes
            # longer than a key, typing would never get to the end of the prompt.
            if past is not None and at > reuse.length and self._model.reuses_prefixes:
                self._cache.put(job.prompt[:at], past)
        if hidden is None or past is None:
            raise AssertionError("a prompt has at least one token that is not cached")
        return hidden[-1], past, reuse.length, forwards

    @property
    def model(self) -> DenoiserModel:
        """The model that runs the jobs."""
        return self._model

    @property
    def conditioning(self) -> Conditioning:
        """What each step is told of the one before it."""
        return self._conditioning

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds, monotonic."""
        return self._clock

    @property
    def vocabulary(self) -> Vocabulary:
        """Masks of end tokens and line breaks."""
        return self._vocabulary

    @property
    def line_breaks(self) -> frozenset[int]:
        """Ids that hold a line break."""
        return self._line_breaks

    @property
    def eos(self) -> frozenset[int]:
        """Ids that end a hole."""
        return self._eos

    def draws(self, job: CanvasJob, rows: int) -> Draws:
        """Randomness of a job: row r draws from seed + r."""
        seed = self._fresh_seed() if job.seed is None else job.seed
        return self._draws([seed + row for row in range(rows)])


class _Run:
    """One job being solved."""

    def __init__(self, solver: Solver, job: CanvasJob, submitted: float) -> None:
        self.solver = solver
        self.job = job
        self.watch = Stopwatch(solver.clock)
        self.forwards = 0
        self.cached = 0
        self.step = 0
        self.deadline = (
            None if job.deadline_ms is None else submitted + job.deadline_ms / 1000
        )  # fmt: skip
        self.watch.ms["queue"] = max(0.0, 1000 * (solver.clock() - submitted))

    def late(self) -> bool:
        return self.deadline is not None and self.solver.clock() >= self.deadline

    def solve(self) -> Generator[Frame | None, None, None]:
        job, canvas_length = self.job, self.solver.model.config.canvas_length
        hidden, past, self.cached, self.forwards = yield from self.solver.encode(job, self.watch)
        yield None
        greedy: Candidate | None = None
        if job.causal_candidate and not self.late():
            greedy = yield from self._greedy(hidden, past)
        if greedy is not None and job.causal_sure is not None and greedy.mean >= job.causal_sure:
            yield self._answer([greedy], Done(DoneKind.CONVERGED))
            return
        batch = batch_of(rows_of(job, canvas_length), self.solver.model.device)
        candidates, done = yield from self._denoise(batch, past)
        if greedy is not None:
            candidates.append(greedy)
        if job.blocks > 1:
            yield from self._further_blocks(candidates[0], past, done)
            return
        kind = job.judge.kind
        if kind is JudgeKind.CAUSAL and len(candidates) > 1 and not self.late():
            with self.watch.stage("judge"):
                tail = tail_of(self.job)
                candidates = judge_candidates(
                    self.solver.model,
                    candidates,
                    tail,
                    hidden,
                    past,
                    self.solver.eos,
                    job.judge.end,
                )
                self.forwards += 1
        elif kind is not JudgeKind.NONE:
            candidates = sorted(candidates, key=lambda c: -c.mean)
        yield self._answer(candidates, done)

    def _greedy(self, hidden: Tensor, past: KeyValues) -> Generator[None, None, Candidate | None]:
        limit = max(self.job.widths, default=len(self.job.canvas))
        ends = self.solver.eos | (
            self.solver.line_breaks if self.job.single_line else frozenset[int]()
        )
        steps = greedy_candidate(
            self.solver.model, self.job, hidden, past, ends, limit, self.solver.banned(self.job)
        )
        while True:
            with self.watch.stage("causal"):
                found = next(steps)
            if isinstance(found, Candidate):
                return found
            self.forwards += 1
            yield None
            if self.late():
                return None

    def _denoise(
        self, batch: Batch, past: KeyValues
    ) -> Generator[Frame | None, None, tuple[list[Candidate], Done]]:
        """Denoise all rows; frames come between steps, the answer is left to the caller."""
        job, model = self.job, self.solver.model
        lo, hi = batch.lo, batch.hi
        given, roles = batch.given[:, lo:hi], batch.roles[:, lo:hi]
        if hi == lo:
            return [Candidate.of(row, row.given, 0.0, self.solver.eos) for row in batch.rows], Done(
                DoneKind.CONVERGED
            )
        rules = _rules(job)
        draws = self.solver.draws(job, len(batch.rows))
        banned = self.solver.banned(job)
        state = start(given, roles, draws, stability=rules.stability)
        conditioning: Tensor | None = None
        told = self.solver.conditioning
        pins = told.of_pins(model, batch.given) if rules.max_steps > 1 else None
        while True:
            before = state.argmax
            with self.watch.stage("steps"):
                ids = batch.given.clone()
                ids[:, lo:hi] = state.ids
                hidden = model.decode(ids, conditioning, past, batch.lengths)
                logits = model.logits(hidden[:, lo:hi])
                step = denoise_step(
                    state, logits, given, roles, rules, draws, self.solver.vocabulary, banned=banned
                )
                state = step.state
                self.forwards += 1
                self.step = state.step
                done = self._ended(state.step, bool(state.done.all()))
                if done is None and pins is not None:
                    soft = told.of_free(model, step.processed)
                    conditioning = pins.clone()
                    free = (roles != Role.PIN)[..., None]
                    conditioning[:, lo:hi] = torch.where(free, soft, pins[:, lo:hi])
            if done is not None:
                return self._candidates(batch, step), done
            yield self._draft(batch, step, before)

    def _ended(self, step: int, converged: bool) -> Done | None:
        if converged:
            return Done(DoneKind.CONVERGED)
        if step >= self.job.max_steps:
            return Done(DoneKind.MAX_STEPS)
        return Done(DoneKind.DEADLINE) if self.late() else None

    def _canvases(self, batch: Batch, argmax: Tensor) -> list[list[int]]:
        whole = batch.given.clone()
        whole[:, batch.lo : batch.hi] = argmax
        return [
            ids[: len(row.given)]
            for ids, row in zip(int_rows(whole), batch.rows, strict=True)
        ]  # fmt: skip

    def _candidates(self, batch: Batch, step: Step) -> list[Candidate]:
        """Every row's draft with the mean log-probability of its own choices."""
        chosen = torch.log_softmax(step.processed, -1).gather(-1, step.state.argmax[..., None])
        free = batch.roles[:, batch.lo : batch.hi] != Role.PIN
        total = chosen[..., 0].masked_fill(~free, 0.0).sum(-1)
        means = floats(total / free.sum(-1).clamp_min(1))
        entropies = float_rows(step.entropy)
        return [
            Candidate.of(row, ids, mean, self.solver.eos)._replace(
                entropy=([0.0] * batch.lo + line + [0.0] * len(ids))[: len(ids)]
            )
            for row, ids, mean, line in zip(
                batch.rows,
                self._canvases(batch, step.state.argmax),
                means,
                entropies,
                strict=True,
            )
        ]

    def _draft(self, batch: Batch, step: Step, before: Tensor) -> Frame:
        """A frame of all rows, the one with the least mean entropy first."""
        free = batch.roles[:, batch.lo : batch.hi] != Role.PIN
        mean = step.entropy.sum(-1) / free.sum(-1).clamp_min(1)
        order = ints(mean.argsort(stable=True))
        same = ints(((step.state.argmax == before) & free).sum(-1))
        canvases = self._canvases(batch, step.state.argmax)
        entropy = [0.0] * batch.given.shape[1]
        entropy[batch.lo : batch.hi] = floats(step.entropy[order[0]])
        rows = batch.rows
        return Frame(
            job=self.job.id,
            step=step.state.step,
            ids=[canvases[r] for r in order],
            widths=[free_count(rows[r]) for r in order],
            settled=[same[r] for r in order],
            entropy=entropy[: len(canvases[order[0]])],
            forwards=self.forwards,
            cached_tokens=self.cached,
            ms=dict(self.watch.ms),
        )

    def _answer(self, candidates: list[Candidate], done: Done) -> Frame:
        return answer(
            self.job,
            candidates,
            done,
            step=self.step,
            forwards=self.forwards,
            cached_tokens=self.cached,
            ms=dict(self.watch.ms),
        )

    def _further_blocks(
        self, first: Candidate, past: KeyValues, done: Done
    ) -> Generator[Frame | None, None, None]:
        """Commit each block by an encoder pass, except the last, and denoise the next behind it."""
        model, length = self.solver.model, self.solver.model.config.canvas_length
        whole, entropy, means = list(first.canvas), list(first.entropy), [first.mean]
        block = first
        for _ in range(self.job.blocks - 1):
            ended = any(i in self.solver.eos for i in block.canvas[block.row.start :])
            if ended or done.kind is DoneKind.DEADLINE:
                break
            with self.watch.stage("encode"):
                ids = torch.tensor(block.canvas, device=model.device)
                _, past = model.encode(ids, past)
                self.forwards += 1
            yield None
            row = Row([0] * length, bytes([Role.HOLE]) * length, 0, length)
            candidates, done = yield from self._denoise(batch_of([row], model.device), past)
            block = candidates[0]
            whole += block.canvas
            entropy += block.entropy
            means.append(block.mean)
        roles = self.job.roles + bytes([Role.HOLE]) * (len(whole) - len(self.job.roles))
        row = Row(whole, roles, first.row.start, len(whole))
        mean = sum(means) / len(means)
        yield self._answer(
            [Candidate.of(row, whole, mean, self.solver.eos)._replace(entropy=entropy)], done
        )


def _rules(job: CanvasJob) -> Rules:
    # The top-k schedule spreads exactly max_steps; only a settled canvas ends it earlier.
    return Rules(
        Rule(job.rule),
        job.max_steps,
        job.entropy_bound,
        job.confidence,
        job.stability,
        job.t_min,
        job.t_max,
        job.keep_seed_steps,
        job.stop,
    )
