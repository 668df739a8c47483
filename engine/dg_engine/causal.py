"""The causal mode as proposer and judge: its greedy line, and the score of finished candidates."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import torch
from torch import Tensor

from dg_engine.candidates import Row, with_hole
from dg_engine.job import CanvasJob, Role
from dg_engine.lists import floats
from dg_engine.model import DenoiserModel, KeyValues


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


def greedy_candidate(
    model: DenoiserModel,
    job: CanvasJob,
    hidden: Tensor,
    past: KeyValues,
    ends: frozenset[int],
    limit: int,
    banned: Tensor | None,
) -> Generator[Candidate | None, None, None]:
    """The causal mode's own continuation, one token per turn: None for each, then the candidate.

    Args:
        hidden: of the last prompt token [hidden].
        ends: ids that end the hole and do not belong to it.
        limit: tokens at most.
        banned: ids that a canvas of this job may not hold [vocab]; ends are always allowed here.
    """
    allowed_ends = torch.zeros(model.config.vocab_size, dtype=torch.bool, device=model.device)
    allowed_ends[list(ends)] = True
    forbidden = None if banned is None else banned & ~allowed_ends
    ids: list[int] = []
    total = 0.0
    # A proposal that hits the limit is no whole hole; the judge still sees it.
    while len(ids) < limit:
        logits = model.logits(hidden)
        if forbidden is not None:
            logits = logits.masked_fill(forbidden, float("-inf"))
        best = torch.log_softmax(logits, -1).max(-1)
        token = int(best.indices)
        total += float(best.values)
        if token in ends:
            break
        ids.append(token)
        states, past = model.encode(torch.tensor([token], device=model.device), past)
        hidden = states[-1]
        yield None
    row = with_hole(job, ids, Role.HOLE, model.config.canvas_length)
    yield Candidate(row, row.given, tuple(ids), total / max(1, len(ids) + 1), [])


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
    distinct: dict[tuple[int, ...], Candidate] = {}
    for candidate in candidates:
        distinct.setdefault(candidate.text, candidate)
    pool = list(distinct.values())
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
