"""The causal mode as proposer and judge: its greedy line, and the score of finished candidates."""

from __future__ import annotations

import operator
from collections.abc import Generator, Iterable
from itertools import takewhile
from typing import NamedTuple

import torch
from torch import Tensor

from dg_engine.candidates import Row, with_hole
from dg_engine.job import CanvasJob, Role
from dg_engine.lists import floats, ints
from dg_engine.lookup import PromptLookup
from dg_engine.model import DenoiserModel, KeyValues

GUESSED_TOKENS = 4
"""That a forward of the causal mode reads beside the last token; see bench/results/lookup.md."""


class Candidate(NamedTuple):
    """A finished canvas."""

    row: Row
    canvas: list[int]
    """All ids, pins in place."""
    text: tuple[int, ...]
    """The ids of its hole up to the first end token."""
    mean: float
    """Mean log-probability per token, by whoever judged last."""
    entropy: list[float]
    """Nats per position, empty when unknown."""

    @property
    def length(self) -> int:
        """Tokens in the hole before the first end token."""
        return len(self.text)

    @classmethod
    def of(cls, row: Row, canvas: list[int], mean: float, eos: frozenset[int]) -> Candidate:
        """Cut the hole's text at its first end token."""
        text: list[int] = []
        for token in canvas[row.start : row.stop]:
            if token in eos:
                break
            text.append(token)
        return cls(row, canvas, tuple(text), mean, [])


def distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The first of those that hold the same text."""
    found: dict[tuple[int, ...], Candidate] = {}
    for candidate in candidates:
        found.setdefault(candidate.text, candidate)
    return list(found.values())


def greedy_candidate(
    model: DenoiserModel,
    job: CanvasJob,
    hidden: Tensor,
    past: KeyValues,
    ends: frozenset[int],
    limit: int,
    banned: Tensor | None,
) -> Generator[Candidate | None, None, None]:
    """The causal mode's own continuation: None for each forward, then the candidate.

    A forward also reads a guess of what comes next (dg_engine.lookup) and keeps what is right of
    it, so it may be worth several tokens; the continuation is the same.

    Args:
        hidden: of the last prompt token [hidden].
        ends: ids that end the hole and do not belong to it.
        limit: tokens at most.
        banned: ids that a canvas of this job may not hold [vocab]; ends are always allowed here.
    """
    allowed_ends = torch.zeros(model.config.vocab_size, dtype=torch.bool, device=model.device)
    allowed_ends[list(ends)] = True
    forbidden = None if banned is None else banned & ~allowed_ends
    lookup = PromptLookup([*_pins(job), *job.prompt]) if model.reuses_prefixes else None
    ids: list[int] = []
    guess: list[int] = []
    total, ended = 0.0, False
    states = hidden[None]
    # A proposal that hits the limit is no whole hole; the judge still sees it.
    while True:
        tokens, sure = _greedy(model.logits(states), forbidden)
        right = sum(takewhile(bool, map(operator.eq, guess, tokens)))
        for token, value in zip(tokens[: right + 1], sure, strict=False):
            total += value
            ended = token in ends
            if ended:
                break
            ids.append(token)
            if lookup is not None:
                lookup.append(token)
        if ended or len(ids) >= limit:
            break
        if guess:
            past = past.crop(past.length - len(guess) + right)
        room = min(GUESSED_TOKENS, limit - len(ids) - 1)
        guess = [] if lookup is None else _before_end(lookup.guess(room), ends)
        states, past = model.encode(torch.tensor([ids[-1], *guess], device=model.device), past)
        yield None
    row = with_hole(job, ids, Role.HOLE, model.config.canvas_length)
    yield Candidate(row, row.given, tuple(ids), total / max(1, len(ids) + 1), [])


def _pins(job: CanvasJob) -> list[int]:
    return [t for t, role in zip(job.canvas, job.roles, strict=True) if role == Role.PIN]


def _before_end(guess: list[int], ends: frozenset[int]) -> list[int]:
    """A guess up to its first end token, which would not be read on behind."""
    return list(takewhile(lambda token: token not in ends, guess))


def _greedy(logits: Tensor, forbidden: Tensor | None) -> tuple[list[int], list[float]]:
    """The likeliest token of each row [rows, vocab], and its log-probability."""
    if forbidden is not None:
        logits = logits.masked_fill(forbidden, float("-inf"))
    best = torch.log_softmax(logits, -1).max(-1)
    return ints(best.indices), floats(best.values)


def judge_candidates(
    model: DenoiserModel,
    candidates: list[Candidate],
    tail: list[int],
    hidden: Tensor,
    past: KeyValues,
    eos: frozenset[int],
    end: int | None = None,
) -> list[Candidate]:
    """Rank candidates by the summed causal log-probability of their text and `tail`, best first.

    One encoder pass over all of them. hidden: of the last prompt token [hidden]. The `mean` of
    each becomes its sum divided by the tokens judged; with `end`, that of its text and `end`.
    """
    pool = distinct(candidates)
    rows = [[*candidate.text, *tail] for candidate in pool]
    width = max(1 + len(candidate.text) for candidate in pool)
    width = max(width, *(len(row) for row in rows))
    pad = next(iter(sorted(eos)), 0)
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=model.device)
    lengths = torch.tensor([len(row) for row in rows], device=model.device)
    states = model.encode_rows(ids, past)
    first = hidden.expand(len(rows), 1, -1)
    logits = model.logits(torch.cat((first, states[:, :-1]), 1))
    said = torch.log_softmax(logits, -1)
    chosen = said.gather(-1, ids[..., None])[..., 0]
    place = torch.arange(width, device=model.device)
    totals = floats(chosen.masked_fill(place >= lengths[:, None], 0.0).sum(-1))
    means = [total / max(1, len(row)) for total, row in zip(totals, rows, strict=True)]
    if end is not None:
        texts = torch.tensor([candidate.length for candidate in pool], device=model.device)
        ended = said[torch.arange(len(pool), device=model.device), texts, end]
        sure = chosen.masked_fill(place >= texts[:, None], 0.0).sum(-1) + ended
        means = floats(sure / (texts + 1))
    order = sorted(range(len(pool)), key=lambda row: -totals[row])
    return [pool[row]._replace(mean=means[row]) for row in order]
