"""Product of FP8 rows and FP8 weights, scaled by row and column, for as few rows as a canvas has.

Weights are read once and from all over the chip: tiles are small enough that every multiprocessor
has one, or the depth is shared out and the last of a tile's programs to arrive adds the parts up
(split-K with tickets). Where rows are few, weights take the side of the tensor core that holds 64
(`swapped`). Reference: dg_kernels.reference.scaled_product.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

MULTIPROCESSORS = 132
"""Of an H100 or H200."""


class Cut(NamedTuple):
    """How a product is cut into programs; no result depends on it but by rounding."""

    block_m: int
    """Rows of a tile, a power of two from 16."""
    block_n: int
    """Columns of a tile, a power of two from 16."""
    block_k: int
    """Depth of a turn, a power of two from 32."""
    splits: int = 1
    """Programs that share the depth of one tile."""
    swapped: bool = False
    """Whether weights are the left operand."""
    warps: int = 4
    stages: int = 4


@triton.jit
def _product_kernel(
    rows_of,
    weights,
    row_scales,
    column_scales,
    out,
    partial,
    tickets,
    rows,
    columns,
    row_stride,
    weight_stride,
    out_stride,
    DEPTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLITS: tl.constexpr,
    SWAPPED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    EVEN: tl.constexpr = DEPTH % BLOCK_K == 0
    TURNS: tl.constexpr = (DEPTH + BLOCK_K - 1) // BLOCK_K
    SHARE: tl.constexpr = (TURNS + SPLITS - 1) // SPLITS
    tile = tl.program_id(0)
    split = tl.program_id(1)
    # Neighbours read the same weights.
    down = tl.cdiv(rows, BLOCK_M)
    row = (tile % down) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = (tile // down) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = split * SHARE * BLOCK_K + tl.arange(0, BLOCK_K)
    # What is read beyond the last row or column is never written.
    row_at = rows_of + tl.minimum(row, rows - 1).to(tl.int64)[:, None] * row_stride + depth[None, :]
    weight_at = weights + tl.minimum(column, columns - 1).to(tl.int64)[:, None] * weight_stride
    weight_at += depth[None, :]
    if SWAPPED:
        total = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    else:
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for turn in range(0, tl.minimum(SHARE, TURNS - split * SHARE)):
        if EVEN:
            x = tl.load(row_at)
            w = tl.load(weight_at)
        else:
            inside = (depth + turn * BLOCK_K < DEPTH)[None, :]
            x = tl.load(row_at, mask=inside, other=0.0)
            w = tl.load(weight_at, mask=inside, other=0.0)
        if SWAPPED:
            total = tl.dot(w, tl.trans(x), total, input_precision=PRECISION)
        else:
            total = tl.dot(x, tl.trans(w), total, input_precision=PRECISION)
        row_at += BLOCK_K
        weight_at += BLOCK_K

    if SWAPPED:
        at_row, at_column = row[None, :], column[:, None]
        within = tl.arange(0, BLOCK_N)[:, None] * BLOCK_M + tl.arange(0, BLOCK_M)[None, :]
    else:
        at_row, at_column = row[:, None], column[None, :]
        within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    last = True
    if SPLITS > 1:
        TILE: tl.constexpr = BLOCK_M * BLOCK_N
        part = partial + tile.to(tl.int64) * (SPLITS * TILE) + within
        tl.store(part + split * TILE, total)
        tl.debug_barrier()
        last = tl.atomic_add(tickets + tile, 1) == SPLITS - 1
        if last:
            total = tl.zeros_like(total)
            for other in tl.static_range(SPLITS):
                total += tl.load(part + other * TILE, cache_modifier=".cg")
            tl.store(tickets + tile, 0)
    if last:
        inside = (at_row < rows) & (at_column < columns)
        scale = tl.load(row_scales + at_row, mask=at_row < rows, other=0.0)
        scale = scale * tl.load(column_scales + at_column, mask=at_column < columns, other=0.0)
        to = out + at_row.to(tl.int64) * out_stride + at_column
        tl.store(to, (total * scale).to(out.dtype.element_ty), mask=inside)


def choose_cut(rows: int, columns: int, depth: int) -> Cut:
    """A cut from the shape: enough programs to fill the chip once."""
    if rows <= 64:
        block_m = max(16, triton.next_power_of_2(rows))
        tiles = -(-columns // 64)
        splits = max(1, min(4, MULTIPROCESSORS // tiles))
        return Cut(block_m, 64, 128, splits, swapped=True)
    tiles = -(-rows // 128) * -(-columns // 128)
    if tiles >= MULTIPROCESSORS * 3 // 4:
        return Cut(128, 128, 128, 1, warps=8)
    return Cut(64, 64, 128, 1)


def scaled_product(
    rows_of: Tensor,
    weights: Tensor,
    row_scales: Tensor,
    column_scales: Tensor,
    *,
    out: Tensor | None = None,
    dtype: torch.dtype = torch.bfloat16,
    cut: Cut | None = None,
    tickets: Tensor | None = None,
) -> Tensor:
    """`(rows_of @ weights.T) * row_scales * column_scales`.

    Args:
        rows_of: float8_e4m3fn [rows, depth], or any dtype that both operands share; contiguous
            along the depth, as `weights`.
        weights: [columns, depth].
        row_scales: float32, one for each row.
        column_scales: float32, one for each column.
        out: [rows, columns], written where given.
        dtype: of the result where `out` is not given.
        cut: see Cut; by default choose_cut's. Splits need `tickets`.
        tickets: int32 zeros, one for each tile, left as zeros. One product at a time may have them.

    Returns:
        [rows, columns]. Raises ValueError for shapes that do not fit. Nothing is read back to the
        host, so a CUDA graph can hold it.
    """
    (rows, depth), columns = rows_of.shape, len(weights)
    if weights.shape[1] != depth:
        raise ValueError(f"Rows of {depth} numbers do not fit weights of {weights.shape[1]}.")
    if rows_of.stride(1) != 1 or weights.stride(1) != 1:
        raise ValueError("Rows and weights must be contiguous along the depth.")
    if row_scales.numel() != rows or column_scales.numel() != columns:
        raise ValueError(f"Give {rows} scales of rows and {columns} of columns.")
    if out is None:
        out = torch.empty(rows, columns, dtype=dtype, device=rows_of.device)
    if rows == 0 or columns == 0:
        return out
    cut = cut or choose_cut(rows, columns, depth)
    turns = -(-depth // cut.block_k)
    # A program without a turn would only wait.
    splits = -(-turns // -(-turns // cut.splits))
    tiles = -(-rows // cut.block_m) * -(-columns // cut.block_n)
    partial = None
    if splits > 1:
        if tickets is None or tickets.numel() < tiles:
            raise ValueError(f"{splits} programs a tile need {tiles} tickets.")
        shape = (tiles, splits, cut.block_m, cut.block_n)
        partial = torch.empty(shape, dtype=torch.float32, device=rows_of.device)
    _product_kernel[(tiles, splits)](
        rows_of, weights, row_scales, column_scales, out, partial, tickets, rows, columns,
        rows_of.stride(0), weights.stride(0), out.stride(0), DEPTH=depth, BLOCK_M=cut.block_m,
        BLOCK_N=cut.block_n, BLOCK_K=cut.block_k, SPLITS=splits, SWAPPED=cut.swapped,
        PRECISION="ieee" if rows_of.dtype == torch.float32 else "tf32",
        num_warps=cut.warps, num_stages=cut.stages,
    )  # fmt: skip
    return out
