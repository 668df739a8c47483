"""The split launch of canvas_attention on Hopper, in Gluon.

What Triton's compiler does to the kernel of dg_kernels.canvas_attention waits for each product in
turn. Here the scores of a tile of keys are computed while the values of the tile before are mixed,
and softmax runs under that mixing (the order inside a warp group of FlashAttention-3, Shah et al.
2024). Keys and values come by the tensor memory accelerator, a box of one page at a time, and rows
and keys that are not seen are masked only in tiles that hold some. It takes the arguments of
`_attend_kernel`, writes the same, and leaves the join of splits to the same second launch.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false
# A flag of the compiler and a value on the device cannot share one condition.
# ruff: noqa: SIM102

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
import triton
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from dg_kernels.reference import MaskRule

TRIED = "3.6."
"""Triton whose Gluon this is written for; it promises nothing to later ones."""
BLOCK_M = 128
"""Rows of a tile; a warp group takes 64 of them."""
WARPS = 8
COLUMNS = 64
"""Of a box: 128 bytes, the widest swizzle of shared memory."""
LEAST_BOX = 16
"""Keys of the smallest box: four make a tile, and vLLM gives sliding layers pages of so many."""
SHARED_BYTES = 227 * 1024
LOG2_E = 1.4426950408889634


class Shape(NamedTuple):
    """How a head of one size is cut."""

    block_n: int
    """Keys of a tile."""
    stages: int
    """Tiles of keys, and tiles of values, that shared memory holds."""
    value_parts: int = 1
    """Programs that share the columns of the values, each of which scores all keys by itself."""


SHAPES = {64: Shape(64, 2), 128: Shape(64, 2), 256: Shape(64, 2), 512: Shape(64, 1, 2)}
"""By head size."""


@gluon.jit
def _interval(position, front, keys, causal, window, RULE: gl.constexpr):
    """As in dg_kernels.canvas_attention: first key seen and the one behind the last."""
    high = gl.where(causal, position + 1, keys)
    if RULE == "full":
        low = high * 0
    elif RULE == "anchored":
        low = gl.where(causal, position, front) - window + 1
    else:
        low = position - window + 1
        high = gl.minimum(high, position + window)
    return gl.maximum(low, 0), gl.minimum(high, keys)


@gluon.jit
def _page(table, key, keys, PAGE: gl.constexpr):
    """Page of a key; of one behind the last, a page that is not there, which is copied as zeros."""
    return gl.load(table + key // PAGE, mask=key < keys, other=-1)


@gluon.jit
def _pages(table, tile, keys, PAGE: gl.constexpr, BOX: gl.constexpr, BLOCK_N: gl.constexpr):
    """Page of each box of a tile, of at most four."""
    first = _page(table, tile * BLOCK_N, keys, PAGE)
    second = first
    third = first
    fourth = first
    if BLOCK_N // BOX > 1:
        second = _page(table, tile * BLOCK_N + BOX, keys, PAGE)
    if BLOCK_N // BOX > 2:
        third = _page(table, tile * BLOCK_N + 2 * BOX, keys, PAGE)
        fourth = _page(table, tile * BLOCK_N + 3 * BOX, keys, PAGE)
    return first, second, third, fourth


@gluon.jit
def _copy_part(pages, page, first_key, key_head, column, barrier, tile, wanted,
               PART: gl.constexpr, PAGE: gl.constexpr, BOX: gl.constexpr):  # fmt: skip
    """Ask for one box of a tile of keys or values; its rows are a slice of the tile's."""
    tma.async_copy_global_to_shared(
        pages,
        [page, (first_key + PART * BOX) % PAGE, key_head, column],
        barrier,
        tile.slice(PART * BOX, BOX, 0),
        pred=wanted,
    )


@gluon.jit
def _copy(
    pages, numbers, tile, key_head, column, barrier, to, wanted, PAGE: gl.constexpr,
    BOX: gl.constexpr, BLOCK_N: gl.constexpr, WIDTH: gl.constexpr,
):  # fmt: skip
    """Ask for WIDTH columns of a tile of keys or values, from a column on."""
    mbarrier.expect(barrier, BLOCK_N * WIDTH * 2, pred=wanted)
    for part in gl.static_range(BLOCK_N // BOX):
        _copy_part(
            pages, numbers[part], tile * BLOCK_N, key_head, column, barrier, to, wanted, part,
            PAGE, BOX,
        )  # fmt: skip


@gluon.jit
def _masked(scores, first_key, low, high, BLOCK_N: gl.constexpr, LAYOUT: gl.constexpr):
    key = first_key + gl.arange(0, BLOCK_N, gl.SliceLayout(0, LAYOUT))[None, :]
    seen = (key >= low[:, None]) & (key < high[:, None])
    return gl.where(seen, scores, float("-inf"))


@gluon.jit
def _weigh(scores, greatest, total, scale):
    """Weights of a tile, the new greatest scaled score and sum, and what is kept of the old."""
    higher = gl.maximum(greatest, gl.max(scores, 1) * scale)
    # Where a row has seen nothing yet, -inf - -inf would be NaN.
    shift = gl.where(higher == float("-inf"), 0.0, higher)
    weights = gl.exp2(gl.fma(scores, scale, -shift[:, None]))
    kept = gl.exp2(greatest - shift)
    return weights, higher, total * kept + gl.sum(weights, 1), kept


@gluon.jit
def _after(sums):
    """Sums or shares of weights, unchanged, none of which is below 0: what follows comes after.

    Nothing but control flow keeps the assembler from waiting for a product earlier than it is told
    to, which would leave softmax with nothing to run under.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .pred below; setp.lt.f32 below, $1, 0fBF800000; @below trap; mov.f32 $0, $1; }",
        "=f,f", [sums], dtype=gl.float32, is_pure=False, pack=1,
    )  # fmt: skip


@gluon.jit
def _store_rows(
    out, rows, first_token, offset, count, key_head, first_column, token_stride, head_stride,
    GROUP: gl.constexpr, BLOCK_M: gl.constexpr, VALUE_DIM: gl.constexpr, LAYOUT: gl.constexpr,
):  # fmt: skip
    """Write a block's rows from a column on, but none behind its sequence's last."""
    row = gl.arange(0, BLOCK_M, gl.SliceLayout(1, LAYOUT))
    column = first_column + gl.arange(0, VALUE_DIM, gl.SliceLayout(0, LAYOUT))
    at = offset + row // GROUP
    head = key_head * GROUP + row % GROUP
    row_at = (first_token + at).to(gl.int64) * token_stride + head * head_stride
    to = out + row_at[:, None] + column[None, :]
    gl.store(to, rows, mask=(at < count)[:, None], eviction_policy="evict_last")


# A batch of another size is not another kernel.
@gluon.jit(do_not_specialize=["table_stride", "tokens", "sequences", "splits", "window"])
def _attend_hopper_kernel(
    query, key_pages, value_pages, block_table, query_starts, key_counts, causal_flags, leading,
    out, partial, partial_weights, table_stride, out_token_stride, out_head_stride, tokens,
    sequences, splits, scale, window, GROUP: gl.constexpr, KEY_HEADS: gl.constexpr,
    HEAD_DIM: gl.constexpr, VALUE_PARTS: gl.constexpr, PAGE: gl.constexpr, BOX: gl.constexpr,
    RULE: gl.constexpr, JOINED: gl.constexpr, LEADING: gl.constexpr,
    SEQUENCES_PADDED: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr, COLUMNS: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    BLOCK_Q: gl.constexpr = BLOCK_M // GROUP
    VALUE_DIM: gl.constexpr = HEAD_DIM // VALUE_PARTS
    dtype: gl.constexpr = query.dtype
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, BLOCK_N, 16])
    MIXED: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, VALUE_DIM, 16])
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, MIXED, 2)
    ROWS: gl.constexpr = gl.SliceLayout(1, SCORES)
    MIXED_ROWS: gl.constexpr = gl.SliceLayout(1, MIXED)
    TILE: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    # A thread moves 16 bytes at once.
    OUT: gl.constexpr = gl.BlockedLayout(
        [1, 8], [256 // VALUE_DIM, VALUE_DIM // 8], [num_warps, 1], [1, 0]
    )
    block = gl.program_id(0)
    key_head = gl.program_id(1) // VALUE_PARTS
    part = gl.program_id(1) % VALUE_PARTS
    column = part * VALUE_DIM
    split = gl.program_id(2)

    # Sequence s begins at block start // BLOCK_Q + s, which leaves each of them enough blocks.
    if SEQUENCES_PADDED == 1:
        sequence = block * 0
    else:
        # Every warp holds all sequences, so the sum needs no shared memory.
        each: gl.constexpr = gl.BlockedLayout(
            [max(1, SEQUENCES_PADDED // 32)], [32], [num_warps], [0]
        )
        index = gl.arange(0, SEQUENCES_PADDED, each)
        starts = gl.load(query_starts + index, mask=index < sequences, other=0)
        begun = (starts // BLOCK_Q + index <= block) & (index < sequences)
        sequence = gl.sum(begun.to(gl.int32), 0) - 1
    start = gl.load(query_starts + sequence)
    count = gl.load(query_starts + sequence + 1) - start
    keys = gl.load(key_counts + sequence)
    causal = gl.load(causal_flags + sequence) != 0
    lead = gl.load(leading + sequence) if LEADING else 0
    offset = (block - (start // BLOCK_Q + sequence)) * BLOCK_Q
    if offset >= count:
        return
    past = keys - count
    front = past + lead

    # What rows see begins and ends no earlier than for the rows before them.
    last = gl.minimum(offset + BLOCK_Q, count) - 1
    tile_low, all_high = _interval(
        past + offset, front, keys, causal | (offset < lead), window, RULE
    )
    all_low, tile_high = _interval(past + last, front, keys, causal | (last < lead), window, RULE)
    first_tile = tile_low // BLOCK_N
    all_tiles = gl.maximum(gl.cdiv(tile_high, BLOCK_N) - first_tile, 0)
    share = gl.cdiv(all_tiles, splits)
    begin = first_tile + split * share
    tiles = gl.minimum(begin + share, first_tile + all_tiles) - begin

    row = gl.arange(0, BLOCK_M, ROWS)
    at = offset + row // GROUP
    row_inside = at < count
    token = (start + at).to(gl.int64)
    head = key_head * GROUP + row % GROUP
    weight_at = (split * tokens + token) * (KEY_HEADS * GROUP) + head
    if tiles <= 0:
        if JOINED:
            nothing = gl.full([BLOCK_M], float("-inf"), gl.float32, ROWS)
            gl.store(partial_weights + weight_at, nothing, mask=row_inside & (part == 0))
        else:
            zeros = gl.full([BLOCK_M, VALUE_DIM], 0.0, gl.float32, OUT)
            _store_rows(
                out, zeros.to(dtype), start, offset, count, key_head, column, out_token_stride,
                out_head_stride, GROUP, BLOCK_M, VALUE_DIM, OUT,
            )  # fmt: skip
        return

    queries = gl.allocate_shared_memory(dtype, [BLOCK_M, HEAD_DIM], TILE)
    key_tiles = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, HEAD_DIM], TILE)
    value_tiles = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, VALUE_DIM], TILE)
    query_there = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    keys_there = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    values_there = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(query_there, count=1)
    for made in gl.static_range(STAGES):
        mbarrier.init(keys_there.index(made), count=1)
        mbarrier.init(values_there.index(made), count=1)

    table = block_table + sequence.to(gl.int64) * table_stride
    mbarrier.expect(query_there, BLOCK_M * HEAD_DIM * 2)
    tma.async_copy_global_to_shared(
        query, [start + offset, key_head * GROUP, 0], query_there, queries
    )
    # Tile i lies in stage i % STAGES, and is the (i // STAGES)th copy its barrier counts.
    for first in gl.static_range(STAGES):
        numbers = _pages(table, begin + first, keys, PAGE, BOX, BLOCK_N)
        _copy(
            key_pages, numbers, begin + first, key_head, 0, keys_there.index(first),
            key_tiles.index(first), first < tiles, PAGE, BOX, BLOCK_N, HEAD_DIM,
        )  # fmt: skip
        _copy(
            value_pages, numbers, begin + first, key_head, column, values_there.index(first),
            value_tiles.index(first), first < tiles, PAGE, BOX, BLOCK_N, VALUE_DIM,
        )  # fmt: skip

    low, high = _interval(past + at, front, keys, causal | (at < lead), window, RULE)
    greatest = gl.full([BLOCK_M], float("-inf"), gl.float32, ROWS)
    total = gl.full([BLOCK_M], 0.0, gl.float32, ROWS)
    no_scores = gl.full([BLOCK_M, BLOCK_N], 0.0, gl.float32, SCORES)
    mixed = gl.full([BLOCK_M, VALUE_DIM], 0.0, gl.float32, MIXED)

    # The first tile's scores; nothing can be mixed meanwhile.
    ahead = _pages(table, begin + STAGES, keys, PAGE, BOX, BLOCK_N)
    mbarrier.wait(query_there, 0)
    mbarrier.wait(keys_there.index(0), 0)
    scoring = warpgroup_mma(
        queries, key_tiles.index(0).permute((1, 0)), no_scores, use_acc=False, is_async=True
    )
    scores = warpgroup_mma_wait(0, deps=[scoring])
    gl.thread_barrier()
    _copy(
        key_pages, ahead, begin + STAGES, key_head, 0, keys_there.index(0), key_tiles.index(0),
        tiles > STAGES, PAGE, BOX, BLOCK_N, HEAD_DIM,
    )  # fmt: skip
    first_key = begin * BLOCK_N
    if (first_key < all_low) | (first_key + BLOCK_N > all_high):
        scores = _masked(scores, first_key, low, high, BLOCK_N, SCORES)
    weights, greatest, total, kept = _weigh(scores, greatest, total, scale)
    shares = gl.convert_layout(weights.to(dtype), WEIGHTS)

    for step in range(1, tiles):
        tile = begin + step
        stage = step % STAGES
        before = (step - 1) % STAGES
        keys_ahead = _pages(table, tile + STAGES, keys, PAGE, BOX, BLOCK_N)
        values_ahead = _pages(table, tile, keys, PAGE, BOX, BLOCK_N)
        mbarrier.wait(keys_there.index(stage), (step // STAGES) & 1)
        scoring = warpgroup_mma(
            queries, key_tiles.index(stage).permute((1, 0)), no_scores, use_acc=False,
            is_async=True,
        )  # fmt: skip
        kept = _after(kept)
        mixed = mixed * gl.convert_layout(kept, MIXED_ROWS)[:, None]
        mbarrier.wait(values_there.index(before), ((step - 1) // STAGES) & 1)
        mixing = warpgroup_mma(shares, value_tiles.index(before), mixed, is_async=True)
        scores = warpgroup_mma_wait(1, deps=[scoring])
        # All warps have read this tile's keys.
        gl.thread_barrier()
        _copy(
            key_pages, keys_ahead, tile + STAGES, key_head, 0, keys_there.index(stage),
            key_tiles.index(stage), step + STAGES < tiles, PAGE, BOX, BLOCK_N, HEAD_DIM,
        )  # fmt: skip
        if STAGES > 1:
            # And the values of the tile before the last.
            _copy(
                value_pages, values_ahead, tile, key_head, column, values_there.index(stage),
                value_tiles.index(stage), step >= STAGES, PAGE, BOX, BLOCK_N, VALUE_DIM,
            )  # fmt: skip
        first_key = tile * BLOCK_N
        if (first_key < all_low) | (first_key + BLOCK_N > all_high):
            scores = _masked(scores, first_key, low, high, BLOCK_N, SCORES)
        weights, greatest, total, kept = _weigh(scores, greatest, total, scale)
        total = _after(total)
        mixed, shares = warpgroup_mma_wait(0, deps=[mixing, shares])
        if STAGES == 1:
            gl.thread_barrier()
            _copy(
                value_pages, values_ahead, tile, key_head, column, values_there.index(0),
                value_tiles.index(0), step > 0, PAGE, BOX, BLOCK_N, VALUE_DIM,
            )  # fmt: skip
        shares = gl.convert_layout(weights.to(dtype), WEIGHTS)
    mixed = mixed * gl.convert_layout(kept, MIXED_ROWS)[:, None]

    final = tiles - 1
    mbarrier.wait(values_there.index(final % STAGES), (final // STAGES) & 1)
    # A page's slots behind the last key may hold NaN, and no weight of 0 makes that 0.
    filled = keys - (begin + final) * BLOCK_N
    if filled < BLOCK_N:
        if filled % BOX != 0:
            box: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [num_warps, 1], [1, 0])
            row_in_box = gl.arange(0, BLOCK_N, gl.SliceLayout(1, box))
            inside = row_in_box[:, None] < filled
            last_values = value_tiles.index(final % STAGES)
            for strip in gl.static_range(VALUE_DIM // COLUMNS):
                some = last_values.slice(strip * COLUMNS, COLUMNS, 1)
                some.store(gl.where(inside, some.load(box), 0.0).to(dtype))
            fence_async_shared()
            gl.thread_barrier()
    mixing = warpgroup_mma(shares, value_tiles.index(final % STAGES), mixed, is_async=True)
    mixed, shares = warpgroup_mma_wait(0, deps=[mixing, shares])

    share_of_one = 1.0 / gl.where(total > 0, total, 1.0)
    mixed = mixed * gl.convert_layout(share_of_one, MIXED_ROWS)[:, None]
    if JOINED:
        weight = gl.where(total > 0, greatest + gl.log2(total), float("-inf"))
        gl.store(partial_weights + weight_at, weight, mask=row_inside & (part == 0))
    # Through the queries' shared memory, so that whole rows are written.
    rows = queries.slice(0, VALUE_DIM, 1)
    rows.store(mixed.to(dtype))
    gl.thread_barrier()
    if JOINED:
        _store_rows(
            partial, rows.load(OUT), split * tokens + start, offset, count, key_head, column,
            KEY_HEADS * GROUP * HEAD_DIM, HEAD_DIM, GROUP, BLOCK_M, VALUE_DIM, OUT,
        )  # fmt: skip
    else:
        _store_rows(
            out, rows.load(OUT), start, offset, count, key_head, column, out_token_stride,
            out_head_stride, GROUP, BLOCK_M, VALUE_DIM, OUT,
        )  # fmt: skip


def _descriptor(tensor: Tensor, block: list[int]) -> TensorDescriptor:
    """For copies of such blocks; a dimension of one element may have any stride."""
    shape = list(tensor.shape)
    strides = [s if size > 1 else 8 for size, s in zip(shape, tensor.stride(), strict=True)]
    layout = gl.NVMMASharedLayout(128, 16, len(block))
    return TensorDescriptor(tensor, shape, [*strides[:-1], 1], block, layout)


def _aligned(tensor: Tensor) -> bool:
    """Whether the accelerator can copy from it: 16 bytes at a time."""
    size = tensor.element_size()
    return tensor.data_ptr() % 16 == 0 and all(
        stride * size % 16 == 0
        for length, stride in zip(tensor.shape[:-1], tensor.stride()[:-1], strict=True)
        if length > 1
    )


@functools.cache
def _shared_bytes(head_dim: int) -> int:
    """Of the queries, the tiles, and barriers and what the compiler adds."""
    shape = SHAPES[head_dim]
    columns = head_dim + head_dim // shape.value_parts
    return 2 * (BLOCK_M * head_dim + shape.stages * shape.block_n * columns) + 1024


@functools.cache
def _hopper(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device)[0] == 9


def fits(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    scale: float,
) -> bool:
    """Whether `attend` can take the place of the portable kernel in tiles of BLOCK_M rows, with
    the splits' results like the query."""
    head_dim, page_size = query.shape[2], key_pages.shape[1]
    group = query.shape[1] // key_pages.shape[2]
    return (
        query.is_cuda
        and triton.__version__.startswith(TRIED)
        and _hopper(query.device)
        and query.dtype in (torch.bfloat16, torch.float16)
        and key_pages.dtype == value_pages.dtype == query.dtype
        and head_dim in SHAPES
        and group <= BLOCK_M
        and page_size % LEAST_BOX == 0
        and _shared_bytes(head_dim) <= SHARED_BYTES
        and scale > 0
        and all(_aligned(tensor) for tensor in (query, key_pages, value_pages))
    )


def attend(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    query_starts: Tensor,
    key_counts: Tensor,
    causal: Tensor,
    leading: Tensor | None,
    out: Tensor,
    partial: Tensor | None,
    partial_weights: Tensor | None,
    *,
    scale: float,
    window: int | None,
    rule: MaskRule,
    splits: int,
) -> None:
    """The first launch of canvas_attention, whose arguments these are; see `fits`.

    Args:
        partial, partial_weights: [splits, tokens, heads, head_dim] like the query and float32
            [splits, tokens, heads], both contiguous; None where one program sees all keys.
    """
    tokens, heads, head_dim = query.shape
    page_size, key_heads = key_pages.shape[1:3]
    sequences = len(key_counts)
    group = heads // key_heads
    block_n, stages, value_parts = SHAPES[head_dim]
    box = math.gcd(page_size, block_n)
    block_q = BLOCK_M // group
    grid = (tokens // block_q + sequences, key_heads * value_parts, splits)
    arguments = (
        _descriptor(query, [block_q, group, head_dim]),
        _descriptor(key_pages, [1, box, 1, head_dim]),
        _descriptor(value_pages, [1, box, 1, head_dim // value_parts]),
        block_table, query_starts, key_counts, causal, leading, out, partial, partial_weights,
        block_table.stride(0), *out.stride()[:2], tokens, sequences, splits, scale * LOG2_E,
        0 if window is None else window,
    )  # fmt: skip
    options = {
        "GROUP": group, "KEY_HEADS": key_heads, "HEAD_DIM": head_dim, "VALUE_PARTS": value_parts,
        "PAGE": page_size, "BOX": box,
        "RULE": "full" if window is None else rule, "JOINED": splits > 1,
        "LEADING": leading is not None,
        "SEQUENCES_PADDED": triton.next_power_of_2(sequences), "BLOCK_M": BLOCK_M,
        "BLOCK_N": block_n, "STAGES": stages, "COLUMNS": COLUMNS, "num_warps": WARPS,
    }  # fmt: skip
    _attend_hopper_kernel[grid](*arguments, **options)
