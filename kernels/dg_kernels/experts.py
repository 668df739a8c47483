"""The products of chosen experts, where each weight is wanted by few rows.

A canvas of 256 tokens with 8 of 128 experts each gives an expert 16 rows on average, so that what a
product costs is reading the weights once. The weights therefore stand on the side of the product
that wants 64 rows and more, straight from shared memory, and the few rows of an expert are its
columns; whole tiles of weights come by tensor descriptors. `place` sorts rows by expert beforehand,
in one launch and always in the same order. Reference: dg_kernels.reference, by the same names.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from dg_kernels.reference import Places

try:
    from dg_kernels import hopper_experts
except ImportError:  # a Triton without Gluon, or with another one
    hopper_experts = None


class ProductTiling(NamedTuple):
    """How a product is cut."""

    columns: int = 128
    """Of the experts' output, a program."""
    depth: int = 128
    """Of the sum, a turn."""
    warps: int = 4
    stages: int = 4
    programs: int = 0
    """That go through all tiles one after another; 0 for one each."""


@triton.jit
def _sums(a, b, c, d):
    return a + c, b + d


@triton.jit
def _place_kernel(
    ids, sorted_to, experts_to, total_to, made_to, count, EXPERTS: tl.constexpr, ROWS: tl.constexpr,
    COUNT: tl.constexpr, BINS: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    mine = tl.program_id(0)
    at = tl.arange(0, COUNT)
    inside = at < count
    chosen = tl.load(ids + at, mask=inside, other=0)
    expert = tl.arange(0, BINS)
    counts = tl.histogram(chosen, BINS, mask=inside)
    is_mine = inside & (chosen == mine)
    rank = tl.cumsum(is_mine.to(tl.int32), 0) - 1
    padded = (counts + ROWS - 1) // ROWS * ROWS
    start, own = tl.reduce(
        (tl.where(expert < mine, padded, 0), tl.where(expert == mine, counts, 0)), 0, _sums
    )
    own_padded = (own + ROWS - 1) // ROWS * ROWS
    tl.store(sorted_to + start + rank, at, mask=is_mine)
    padding = own + tl.arange(0, ROWS)
    tl.store(
        sorted_to + start + padding, tl.full([ROWS], 0, tl.int32) + count, mask=padding < own_padded
    )
    block = tl.arange(0, BLOCKS)
    owned = block < own_padded // ROWS
    nothing = tl.full([BLOCKS], 0, tl.int32)
    tl.store(experts_to + start // ROWS + block, nothing + mine, mask=owned)
    tl.store(made_to + start // ROWS + block, nothing, mask=owned)
    if mine == 0:
        tl.store(total_to, tl.sum(padded, 0))


@triton.jit
def _multiply_kernel(
    rows, row_scales, experts, expert_scales, weights, sorted_ids, expert_ids, total, out, count,
    columns, depth, COPIES: tl.constexpr, WEIGHTED: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, DEPTH: tl.constexpr, WHOLE: tl.constexpr, PROGRAMS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """rows [n, depth]; experts by descriptor, [experts * columns, depth]; out [count, columns]."""
    across = (columns + COLUMNS - 1) // COLUMNS
    tiles = tl.load(total) // ROWS * across
    turns = (depth + DEPTH - 1) // DEPTH
    first = tl.program_id(0)
    step = PROGRAMS if PROGRAMS else tiles
    for tile in tl.range(first, tiles, step, flatten=PROGRAMS > 0):
        block = tile // across
        column = tile % across * COLUMNS
        expert = tl.load(expert_ids + block)
        place = tl.load(sorted_ids + block * ROWS + tl.arange(0, ROWS))
        inside = place < count
        at = tl.where(inside, place // COPIES, 0).to(tl.int64)
        row_at = rows + at[:, None] * depth + tl.arange(0, DEPTH)[None, :]
        sums = tl.zeros([COLUMNS, ROWS], tl.float32)
        for turn in tl.range(0, turns, num_stages=STAGES):
            weight = experts.load([expert * columns + column, turn * DEPTH])
            wanted = inside[:, None]
            if not WHOLE:
                wanted = wanted & (turn * DEPTH + tl.arange(0, DEPTH) < depth)[None, :]
            row = tl.load(row_at + turn * DEPTH, mask=wanted, other=0.0)
            sums = tl.dot(weight, row.T, sums)
        output = column + tl.arange(0, COLUMNS)
        held = output < columns
        scale = tl.load(expert_scales + expert * columns + output, mask=held, other=0.0)
        factor = tl.load(row_scales + at, mask=inside, other=0.0)
        sums = sums * (scale[:, None] * factor[None, :])
        if WEIGHTED:
            sums = sums * tl.load(weights + place, mask=inside, other=0.0)[None, :]
        to = out + place.to(tl.int64)[None, :] * columns + output[:, None]
        # What is read again soon stays in the L2, where it displaces weights.
        tl.store(
            to, sums.to(out.dtype.element_ty), mask=held[:, None] & inside[None, :],
            eviction_policy="evict_last",
        )  # fmt: skip


def place(ids: Tensor, experts: int, block: int) -> Places:
    """Sort assignments by expert, each expert's padded to whole blocks.

    Args:
        ids: chosen expert of each assignment, int32, any shape; all of them are experts.
        experts: how many there are.
        block: rows of a block, a power of 2.

    Raises ValueError for a block of another size.
    """
    if block & (block - 1):
        raise ValueError("A block has a power of 2 of rows.")
    count = ids.numel()
    blocks = min(count, experts + count // block)
    to: dict[str, Any] = {"dtype": torch.int32, "device": ids.device}
    places = Places(
        torch.empty(blocks * block, **to),
        torch.empty(blocks, **to),
        torch.empty(1, **to),
        torch.empty(blocks, **to),
    )
    _place_kernel[(experts,)](
        ids, *places, count, EXPERTS=experts, ROWS=block,
        COUNT=triton.next_power_of_2(count), BINS=triton.next_power_of_2(experts),
        BLOCKS=triton.next_power_of_2(math.ceil(count / block)),
        num_warps=4 if count <= 1024 else 8,
    )  # fmt: skip
    return places


def multiply(
    rows: Tensor,
    row_scales: Tensor,
    experts: Tensor,
    expert_scales: Tensor,
    places: Places,
    out: Tensor,
    *,
    weights: Tensor | None = None,
    copies: int = 1,
    block: int = 16,
    tiling: ProductTiling | None = None,
) -> Tensor:
    """Each assignment's row times its expert.

    Args:
        rows: [assignments / copies, depth], contiguous, of the experts' dtype.
        row_scales: float32, one for each row.
        experts: [experts, columns, depth], contiguous, a row of which is whole 16 bytes.
        expert_scales: float32 [experts, columns], or with a last axis of 1.
        places: of the assignments, by `place` with the same `block`.
        out: [assignments, columns], contiguous; written, and returned.
        weights: float32, a factor for each assignment.
        copies: assignments that read one row, next to each other.
        block: rows of a block, 16 at least.
        tiling: how to cut; by the sizes if not given.

    Raises ValueError for sizes that do not fit.
    """
    number, columns, depth = experts.shape
    count = out.shape[0]
    cut = tiling or choose_product(columns, depth, block)
    if out.shape[1] != columns or rows.shape != (count // copies, depth):
        raise ValueError("Rows, experts and output must fit each other.")
    table = TensorDescriptor.from_tensor(
        experts.view(number * columns, depth), [cut.columns, cut.depth]
    )
    most = places.experts.shape[0] * math.ceil(columns / cut.columns)
    _multiply_kernel[(min(cut.programs, most) if cut.programs else most,)](
        rows, row_scales, table, expert_scales, weights, *places[:3], out, count, columns, depth,
        COPIES=copies, WEIGHTED=weights is not None, ROWS=block, COLUMNS=cut.columns,
        DEPTH=cut.depth, WHOLE=depth % cut.depth == 0, PROGRAMS=cut.programs,
        STAGES=cut.stages, num_warps=cut.warps,
    )  # fmt: skip
    return out


def one_launch(experts_in: Tensor, experts_out: Tensor, block: int) -> bool:
    """Whether `dg_kernels.hopper_experts.feed` takes these experts, in blocks of so many rows."""
    return hopper_experts is not None and hopper_experts.fits(experts_in, experts_out, block)


def choose_block(assignments: int, experts: int) -> int:
    """Rows of a block: so many that few experts have a second one, for few rows an expert."""
    return 16 if assignments < 8 * experts else 32


def choose_product(columns: int, depth: int, block: int) -> ProductTiling:
    """What was fastest on an H200 (bench.gpu.few_rows), for few rows an expert."""
    if depth > columns:
        return ProductTiling(64 if block == 16 else 128, stages=3)
    if block == 16:
        return ProductTiling(64)
    return ProductTiling(64, stages=3, programs=528)
