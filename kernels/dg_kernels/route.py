"""Which experts a row goes to: the router's product split along its depth, and the choice.

The product is of few columns, so that its depth has to fill the chip; what the parts come to is
added up where the experts are chosen, in one launch. Reference: dg_kernels.reference.route.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from dg_kernels.launching import begin_early, launched

ROWS, DEPTH, TURNS = 16, 128, 2
"""Of a program: rows, and its part of the depth in so many turns."""


@triton.jit
def _score_kernel(
    rows, gate, parts, count, depth, EXPERTS: tl.constexpr, BLOCK: tl.constexpr,
    ROWS: tl.constexpr, DEPTH: tl.constexpr, TURNS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        begin_early()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    expert = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK, ROWS], tl.float32)
    for turn in tl.static_range(TURNS):
        at = (part * TURNS + turn) * DEPTH + tl.arange(0, DEPTH)
        inside = at < depth
        weight = tl.load(
            gate + expert[:, None] * depth + at[None, :],
            mask=(expert < EXPERTS)[:, None] & inside[None, :], other=0.0,
        )  # fmt: skip
        given = tl.load(
            rows + row.to(tl.int64)[:, None] * depth + at[None, :],
            mask=(row < count)[:, None] & inside[None, :], other=0.0,
        )  # fmt: skip
        sums = tl.dot(weight, given.T, sums, input_precision="ieee")
    to = parts + (part * count + row)[None, :] * EXPERTS + expert[:, None]
    tl.store(to, sums, mask=(row < count)[None, :] & (expert < EXPERTS)[:, None])


@triton.jit
def _choose_kernel(
    parts, expert_scale, weights, ids, count, PARTS: tl.constexpr, EXPERTS: tl.constexpr,
    BLOCK: tl.constexpr, CHOSEN: tl.constexpr, KEPT: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        begin_early()
    row = tl.program_id(0)
    expert = tl.arange(0, BLOCK)
    inside = expert < EXPERTS
    scores = tl.zeros([BLOCK], tl.float32)
    for part in tl.static_range(PARTS):
        at = parts + (part * count + row) * EXPERTS + expert
        scores += tl.load(at, mask=inside, other=0.0)
    scores = tl.where(inside, scores, float("-inf"))
    place = tl.arange(0, KEPT)
    found = tl.full([KEPT], float("-inf"), tl.float32)
    chosen = tl.zeros([KEPT], tl.int32)
    for number in tl.static_range(CHOSEN):
        best, which = tl.max(scores, 0, return_indices=True)
        found = tl.where(place == number, best, found)
        chosen = tl.where(place == number, which, chosen)
        scores = tl.where(expert == which, float("-inf"), scores)
    kept = place < CHOSEN
    share = tl.where(kept, tl.exp(found - tl.max(found, 0)), 0.0)
    share = share / tl.sum(share, 0)
    share *= tl.load(expert_scale + chosen, mask=kept, other=0.0).to(tl.float32)
    tl.store(weights + row * CHOSEN + place, share, mask=kept)
    tl.store(ids + row * CHOSEN + place, chosen, mask=kept)


def route(
    rows: Tensor, gate: Tensor, chosen: int, expert_scale: Tensor, early: bool = False
) -> tuple[Tensor, Tensor]:
    """Weights, float32, and experts, int32, of each row, both [rows, chosen], the likeliest first.

    Args:
        rows: what the router reads [rows, depth], contiguous.
        gate: its weights [experts, depth], contiguous, of the same dtype.
        chosen: experts of a row. Of equal scores the lower number comes first.
        expert_scale: a factor for each expert [experts].
        early: see dg_kernels.launching.

    The weights are the softmax over the chosen, times the experts' factors.
    Raises ValueError for sizes that do not fit.
    """
    (count, depth), (experts, _) = rows.shape, gate.shape
    if gate.shape[1] != depth or not rows.is_contiguous() or not gate.is_contiguous():
        raise ValueError("Give contiguous rows and a gate of one depth.")
    if not 0 < chosen <= experts:
        raise ValueError(f"A row has 1 to {experts} experts.")
    parts = math.ceil(depth / (DEPTH * TURNS))
    scores = torch.empty(parts, count, experts, dtype=torch.float32, device=rows.device)
    weights = torch.empty(count, chosen, dtype=torch.float32, device=rows.device)
    ids = torch.empty(count, chosen, dtype=torch.int32, device=rows.device)
    if count:
        block = triton.next_power_of_2(max(experts, 16))
        _score_kernel[(math.ceil(count / ROWS), parts)](
            rows, gate, scores, count, depth, EXPERTS=experts, BLOCK=block, ROWS=ROWS,
            DEPTH=DEPTH, TURNS=TURNS, EARLY=early, num_warps=4, **launched(early),
        )  # fmt: skip
        _choose_kernel[(count,)](
            scores, expert_scale, weights, ids, count, PARTS=parts, EXPERTS=experts, BLOCK=block,
            CHOSEN=chosen, KEPT=triton.next_power_of_2(chosen), EARLY=early, num_warps=1,
            **launched(early),
        )  # fmt: skip
    return weights, ids
