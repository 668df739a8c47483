"""The second launch of canvas_attention: what programs that shared the keys found, joined.

A split leaves, for each row of a head, its mix of values and the weight that it has: log2 of the
sum of its exponentials. One without keys leaves a weight of -inf and nothing else.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dg_kernels.reference import FP8, GREATEST, LEAST_SCALE

JOINED_ROWS = 8
"""Rows that one program of the second launch joins."""


class Parts(NamedTuple):
    """What the splits found, to be joined."""

    mixed: Tensor
    """Of each split [splits, tokens, heads, head_dim]; meant only where it has a weight."""
    weights: Tensor
    """log2 of its share, -inf where it saw no key, float32 [splits, tokens, heads]."""
    query_starts: Tensor
    """Of canvas_attention."""


@triton.jit
def _joined(
    partial, partial_weights, row, inside, rows, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr,
    SPLITS_PADDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Rows of heads [BLOCK, HEAD_DIM] from their splits."""
    all_splits = tl.arange(0, SPLITS_PADDED)[None, :]
    log_weights = tl.load(
        partial_weights + all_splits * rows + row[:, None],
        mask=inside[:, None] & (all_splits < SPLITS),
        other=float("-inf"),
    )
    greatest = tl.max(log_weights, 1)
    shift = tl.where(greatest == float("-inf"), 0.0, greatest)
    column = tl.arange(0, HEAD_DIM)[None, :]
    total = tl.zeros([BLOCK], tl.float32)
    mixed = tl.zeros([BLOCK, HEAD_DIM], tl.float32)
    for split in tl.static_range(SPLITS):
        at = split * rows + row
        weight = tl.exp2(tl.load(partial_weights + at, mask=inside, other=float("-inf")) - shift)
        # A split without keys left its part unwritten.
        part = tl.load(partial + at[:, None] * HEAD_DIM + column, mask=weight[:, None] > 0, other=0)
        total += weight
        mixed += part.to(tl.float32) * weight[:, None]
    return mixed / tl.where(total > 0, total, 1.0)[:, None]


@triton.jit(do_not_specialize=["rows", "sequences"])
def _join_kernel(
    partial, partial_weights, query_starts, out, out_token_stride, out_head_stride, rows,
    sequences, HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr,
    SPLITS_PADDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = row < tl.load(query_starts + sequences) * HEADS
    mixed = _joined(
        partial, partial_weights, row, inside, rows, HEAD_DIM, SPLITS, SPLITS_PADDED, BLOCK
    )
    column = tl.arange(0, HEAD_DIM)[None, :]
    out_at = (row // HEADS) * out_token_stride + (row % HEADS) * out_head_stride
    tl.store(
        out + out_at[:, None] + column, mixed.to(out.dtype.element_ty), mask=inside[:, None]
    )  # fmt: skip


@triton.jit(do_not_specialize=["rows", "sequences"])
def _join_rows_kernel(
    partial, partial_weights, query_starts, out, scales, rows, sequences, greatest, least,
    HEADS: tl.constexpr, HEADS_PADDED: tl.constexpr, HEAD_DIM: tl.constexpr,
    SPLITS: tl.constexpr, SPLITS_PADDED: tl.constexpr,
):  # fmt: skip
    """One token: all of its heads are one row, which has one scale."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS_PADDED)
    held = head < HEADS
    inside = held & (token < tl.load(query_starts + sequences))
    mixed = _joined(
        partial, partial_weights, token * HEADS + head, inside, rows, HEAD_DIM, SPLITS,
        SPLITS_PADDED, HEADS_PADDED,
    )  # fmt: skip
    mixed = mixed.to(partial.dtype.element_ty).to(tl.float32)
    scale = tl.maximum(tl.max(tl.max(tl.abs(mixed), 1), 0) / greatest, least)
    shrunk = tl.minimum(tl.maximum(mixed / scale, -greatest), greatest)
    at = out + (token * HEADS + head)[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    tl.store(at, shrunk.to(out.dtype.element_ty), mask=held[:, None])
    tl.store(scales + token, scale)


def join(parts: Parts, out: Tensor) -> None:
    """Write the splits' joint result to `out` [tokens, heads, head_dim]; see canvas_attention."""
    splits, tokens, heads, head_dim = parts.mixed.shape
    rows = tokens * heads
    _join_kernel[(triton.cdiv(rows, JOINED_ROWS),)](
        parts.mixed, parts.weights, parts.query_starts, out, *out.stride()[:2], rows,
        len(parts.query_starts) - 1, HEADS=heads, HEAD_DIM=head_dim, SPLITS=splits,
        SPLITS_PADDED=triton.next_power_of_2(splits), BLOCK=JOINED_ROWS, num_warps=4,
    )  # fmt: skip


def join_rows(parts: Parts, dtype: torch.dtype = FP8) -> tuple[Tensor, Tensor]:
    """Each token's heads as one row of `dtype` [tokens, heads * head_dim], and its scale [tokens,
    1], float32: what dg_kernels.feed_forward.quantise makes of `join`'s result.

    Rows behind the last sequence's are 0.
    """
    splits, tokens, heads, head_dim = parts.mixed.shape
    device = parts.mixed.device
    out = torch.empty(tokens, heads * head_dim, dtype=dtype, device=device)
    scales = torch.empty(tokens, 1, dtype=torch.float32, device=device)
    _join_rows_kernel[(tokens,)](
        parts.mixed, parts.weights, parts.query_starts, out, scales, tokens * heads,
        len(parts.query_starts) - 1, GREATEST, LEAST_SCALE, HEADS=heads,
        HEADS_PADDED=triton.next_power_of_2(heads), HEAD_DIM=head_dim, SPLITS=splits,
        SPLITS_PADDED=triton.next_power_of_2(splits), num_warps=8,
    )  # fmt: skip
    return out, scales
