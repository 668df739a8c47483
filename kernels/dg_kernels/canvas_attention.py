"""Attention of canvases and prompts over paged keys and values, with the keys split over the chip.

One launch serves a mixed batch: each sequence is read causally or two-sidedly by its flag. The
heads that share a key head are rows of one tile (grouped-query packing), so each key is loaded
once for all of them. What a row sees is one interval of keys; tiles outside a tile's interval are
neither loaded nor computed, and what is left of them is dealt to `splits` programs (Flash-Decoding,
Dao et al. 2023), whose results a second launch joins: dg_kernels.splits. Softmax is online
(FlashAttention, Dao et al. 2022). Reference: dg_kernels.reference.canvas_attention.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false
# A flag of the compiler and a value on the device cannot share one condition.
# ruff: noqa: SIM102

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dg_kernels.reference import MaskRule
from dg_kernels.splits import Parts, join

try:
    from dg_kernels import hopper_attention
except ImportError:  # a Triton without Gluon
    hopper_attention = None

HEAD_DIMS = (64, 128, 256, 512)
MULTIPROCESSORS = 132
"""Of an H100 or H200; splits are chosen to fill them once."""
MAX_SPLITS = 16
"""Where every key may be seen; half of them where a window bounds the keys."""
LOG2_E = 1.4426950408889634


class Tiling(NamedTuple):
    """How the work is cut; no result depends on it but by rounding."""

    block_m: int
    """Rows of a tile: queries times the heads that share a key head; a power of two from 16."""
    block_n: int
    """Keys of a tile, a power of two from 16."""
    splits: int = 1
    """Programs that share the keys of one tile of rows."""
    value_parts: int = 1
    """Programs that share the columns of its output: each scores all keys by itself, and holds
    fewer accumulators."""
    warps: int = 4
    stages: int = 3
    partial_dtype: torch.dtype = torch.float32
    """Of the splits' results, before they are joined."""


@triton.jit
def _interval(position, front, keys, causal, window, RULE: tl.constexpr):
    """First key seen and the one behind the last, by query position; keys count from 0.

    `front` is the position of the first row that sees two-sidedly.
    """
    high = tl.where(causal, position + 1, keys)
    if RULE == "full":
        low = tl.zeros_like(high)
    elif RULE == "anchored":
        low = tl.where(causal, position, front) - window + 1
    else:
        low = position - window + 1
        high = tl.minimum(high, position + window)
    return tl.maximum(low, 0), tl.minimum(high, keys)


@triton.jit
def _pages(table, tile, keys, PAGE: tl.constexpr, BLOCK_N: tl.constexpr):
    """Page of each key of a tile; one number where one page holds the tile."""
    if PAGE % BLOCK_N == 0:
        page = tl.load(table + tile * BLOCK_N // PAGE)
    else:
        key = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        page = tl.load(table + key // PAGE, mask=key < keys, other=0)
    return page


# A batch of another size is not another kernel.
@triton.jit(do_not_specialize=["table_stride", "tokens", "sequences", "splits", "window"])
def _attend_kernel(
    query,
    key_pages,
    value_pages,
    block_table,
    query_starts,
    key_counts,
    causal_flags,
    leading,
    out,
    partial,
    partial_weights,
    query_token_stride,
    query_head_stride,
    key_page_stride,
    KEY_SLOT_STRIDE: tl.constexpr,
    key_head_stride,
    value_page_stride,
    VALUE_SLOT_STRIDE: tl.constexpr,
    value_head_stride,
    table_stride,
    out_token_stride,
    out_head_stride,
    tokens,
    sequences,
    splits,
    scale,
    window,
    GROUP: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_PARTS: tl.constexpr,
    PAGE: tl.constexpr,
    FAR: tl.constexpr,
    RULE: tl.constexpr,
    JOINED: tl.constexpr,
    LEADING: tl.constexpr,
    SEQUENCES_PADDED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr,
):
    BLOCK_Q: tl.constexpr = BLOCK_M // GROUP
    VALUE_DIM: tl.constexpr = HEAD_DIM // VALUE_PARTS
    ONE_PAGE: tl.constexpr = PAGE % BLOCK_N == 0
    block = tl.program_id(0)
    key_head = tl.program_id(1) // VALUE_PARTS
    value_part = tl.program_id(1) % VALUE_PARTS
    split = tl.program_id(2)

    # Sequence s begins at block start // BLOCK_Q + s, which leaves each of them enough blocks.
    index = tl.arange(0, SEQUENCES_PADDED)
    starts = tl.load(query_starts + index, mask=index < sequences, other=0)
    begun = (starts // BLOCK_Q + index <= block) & (index < sequences)
    sequence = tl.sum(begun.to(tl.int32), 0) - 1
    start = tl.load(query_starts + sequence)
    count = tl.load(query_starts + sequence + 1) - start
    offset = (block - (start // BLOCK_Q + sequence)) * BLOCK_Q
    if offset >= count:
        return
    keys = tl.load(key_counts + sequence)
    causal = tl.load(causal_flags + sequence) != 0
    past = keys - count
    lead = tl.load(leading + sequence) if LEADING else 0
    front = past + lead

    row = tl.arange(0, BLOCK_M)
    at = offset + row // GROUP
    row_inside = at < count
    token = (start + at).to(tl.int64)
    head = key_head * GROUP + row % GROUP
    low, high = _interval(past + at, front, keys, causal | (at < lead), window, RULE)
    # What rows see begins and ends no earlier than for the rows before them.
    last = tl.minimum(offset + BLOCK_Q, count) - 1
    tile_low, _ = _interval(past + offset, front, keys, causal | (offset < lead), window, RULE)
    _, tile_high = _interval(past + last, front, keys, causal | (last < lead), window, RULE)
    first_tile = tile_low // BLOCK_N
    tiles = tl.maximum(tl.cdiv(tile_high, BLOCK_N) - first_tile, 0)
    share = tl.cdiv(tiles, splits)
    begin = first_tile + split * share
    end = tl.minimum(begin + share, first_tile + tiles)

    weight_at = (split * tokens + token) * (KEY_HEADS * GROUP) + head
    if JOINED:
        if begin >= end:
            nothing = tl.full([BLOCK_M], float("-inf"), tl.float32)
            tl.store(partial_weights + weight_at, nothing, mask=row_inside)
            return

    column = tl.arange(0, HEAD_DIM)
    value_column = value_part * VALUE_DIM + tl.arange(0, VALUE_DIM)
    q = tl.load(
        query + (token * query_token_stride + head * query_head_stride)[:, None] + column[None, :],
        mask=row_inside[:, None],
        other=0.0,
    )
    greatest = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    mixed = tl.zeros([BLOCK_M, VALUE_DIM], tl.float32)
    # Looked up a tile ahead: a load that waits for one of its own turn costs the pipeline a stage.
    table = block_table + sequence.to(tl.int64) * table_stride
    next_page = _pages(table, tl.minimum(begin, tl.maximum(end - 1, 0)), keys, PAGE, BLOCK_N)
    for tile in range(begin, end):
        key = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        key_inside = key < keys
        page = next_page
        next_page = _pages(table, tl.minimum(tile + 1, end - 1), keys, PAGE, BLOCK_N)
        slot = tile * BLOCK_N % PAGE + tl.arange(0, BLOCK_N) if ONE_PAGE else key % PAGE
        if FAR:
            page = page.to(tl.int64)
        key_at = page * key_page_stride + slot * KEY_SLOT_STRIDE + key_head * key_head_stride
        k = tl.load(
            key_pages + key_at[:, None] + column[None, :], mask=key_inside[:, None], other=0.0
        )
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        seen = (key[None, :] >= low[:, None]) & (key[None, :] < high[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(greatest, tl.max(scores, 1))
        # Where a row has seen nothing yet, -inf - -inf would be NaN.
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - shift[:, None])
        kept = tl.exp2(greatest - shift)
        total = total * kept + tl.sum(weights, 1)
        value_at = (
            page * value_page_stride + slot * VALUE_SLOT_STRIDE + key_head * value_head_stride
        )
        v = tl.load(
            value_pages + value_at[:, None] + value_column[None, :],
            mask=key_inside[:, None],
            other=0.0,
        )
        mixed = tl.dot(
            weights.to(v.dtype), v, mixed * kept[:, None], input_precision=PRECISION
        )  # fmt: skip
        greatest = higher

    mixed = mixed / tl.where(total > 0, total, 1.0)[:, None]
    if JOINED:
        tl.store(
            partial + weight_at[:, None] * HEAD_DIM + value_column[None, :],
            mixed.to(partial.dtype.element_ty),
            mask=row_inside[:, None],
        )
        weight = tl.where(total > 0, greatest + tl.log2(total), float("-inf"))
        tl.store(partial_weights + weight_at, weight, mask=row_inside)
    else:
        out_at = (token * out_token_stride + head * out_head_stride)[:, None]
        tl.store(
            out + out_at + value_column[None, :],
            mixed.to(out.dtype.element_ty),
            mask=row_inside[:, None],
        )


def choose_tiling(
    tokens: int, heads: int, key_heads: int, head_dim: int, *, gluon: bool = False
) -> Tiling:
    """A tiling from what the host knows: enough programs to fill the chip once.

    The tokens count as one sequence's, since a captured graph is made for more sequences than most
    of its batches have. What wins at which size was measured on an H200 (bench/results/gpu.md).
    With `gluon` it is for dg_kernels.hopper_attention, which takes rows and splits from it.
    """
    group = heads // key_heads
    rows = tokens * group
    most = 64 if head_dim == 512 and not gluon else 128
    block_m = max(16, triton.next_power_of_2(min(rows, most)), triton.next_power_of_2(group))
    value_parts = 2 if head_dim == 512 and block_m >= 64 else 1
    blocks = -(-rows // block_m)
    most_splits = MAX_SPLITS if head_dim == 512 else MAX_SPLITS // 2
    splits = min(most_splits, max(1, MULTIPROCESSORS // (blocks * key_heads * value_parts)))
    block_n = 64 if head_dim <= 128 else 32
    # A warp takes 16 rows. With three stages two tiles of keys are asked for ahead.
    warps = max(4, block_m // 16)
    return Tiling(block_m, block_n, splits, value_parts, warps, 3, torch.float32)


def canvas_attention(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    query_starts: Tensor,
    key_counts: Tensor,
    causal: Tensor,
    *,
    scale: float = 1.0,
    window: int | None = None,
    rule: MaskRule = "anchored",
    tiling: Tiling | None = None,
    out: Tensor | None = None,
    leading: Tensor | None = None,
) -> Tensor:
    """Attention of every sequence's newest tokens over all of its tokens.

    Args:
        query: float32, float16 or bfloat16 [tokens, heads, head_dim], the sequences' newest tokens
            one after another; their keys and values are in the pages already.
        key_pages, value_pages: [pages, page_size, key_heads, head_dim], as vLLM lays them out
            (any strides but the last, which is 1).
        block_table: pages of each sequence in order, int32 [sequences, most_pages].
        query_starts: where each sequence's queries begin and the last ones end, int32
            [sequences + 1]; a sequence may have none.
        key_counts: tokens of each sequence, the newest included, int32 [sequences].
        causal: bool or int32 [sequences]; a sequence that is not causal sees two-sidedly.
        scale: factor of the scores.
        window: of a sliding layer; None sees everything.
        rule: how the window bounds two-sided sequences. `anchored`: the last window - 1 tokens
            before the queries and all queries; `symmetric`: |query - key| < window. Causal ones see
            the last `window` tokens, their own included, by either.
        tiling: see Tiling; by default choose_tiling's.
        out: written where given, like `query`.
        leading: how many of each sequence's first queries are causal though it sees two-sidedly,
            int32 [sequences]: the end of a prompt in front of a canvas. None is 0 for all.

    Returns:
        [tokens, heads, head_dim]; 0 where a row sees no key. Rows behind the last sequence's are
        left as they are.

    Raises ValueError for shapes that do not fit. Nothing is read back to the host, and no shape
    depends on what the device holds, so a CUDA graph can hold it.
    """
    if out is None:
        out = torch.empty_like(query)
    parts = attend(
        query, key_pages, value_pages, block_table, query_starts, key_counts, causal, out,
        scale=scale, window=window, rule=rule, tiling=tiling, leading=leading,
    )  # fmt: skip
    if parts is not None:
        join(parts, out)
    return out


def attend(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    query_starts: Tensor,
    key_counts: Tensor,
    causal: Tensor,
    out: Tensor,
    *,
    scale: float = 1.0,
    window: int | None = None,
    rule: MaskRule = "anchored",
    tiling: Tiling | None = None,
    leading: Tensor | None = None,
) -> Parts | None:
    """The first launch of canvas_attention, whose arguments these are.

    Returns what is to be joined; None where nothing was split, so that `out` holds the answer.
    """
    tokens, heads, head_dim = query.shape
    page_size, key_heads = key_pages.shape[1:3]
    sequences = len(key_counts)
    if head_dim not in HEAD_DIMS or key_pages.shape[3] != head_dim:
        raise ValueError(f"A head of {head_dim} is not one of {HEAD_DIMS}.")
    if heads % key_heads or (heads // key_heads) & (heads // key_heads - 1):
        raise ValueError(f"{heads} heads over {key_heads} are no groups of 1, 2, 4, 8 or 16.")
    if any(t.stride(-1) != 1 for t in (query, key_pages, value_pages)):
        raise ValueError("Queries, keys and values must be contiguous along the head.")
    if window is not None and window < 1:
        raise ValueError(f"A window of {window} sees nothing; give 1 or more, or None.")
    group = heads // key_heads
    if tokens == 0 or sequences == 0:
        return None
    gluon = hopper_attention is not None and hopper_attention.fits(
        query, key_pages, value_pages, scale
    )
    if tiling is None:
        tiling = choose_tiling(tokens, heads, key_heads, head_dim, gluon=gluon)._replace(
            partial_dtype=query.dtype
        )
    splits = tiling.splits
    parts: Parts | None = None
    if splits > 1:
        shape = (splits, tokens, heads)
        parts = Parts(
            torch.empty((*shape, head_dim), dtype=tiling.partial_dtype, device=query.device),
            torch.empty(shape, dtype=torch.float32, device=query.device),
            query_starts,
        )
    partial, partial_weights, _ = parts or (None, None, None)
    if (
        hopper_attention is not None
        and gluon
        and tiling.block_m == hopper_attention.BLOCK_M
        and tiling.partial_dtype == query.dtype
    ):
        hopper_attention.attend(
            query, key_pages, value_pages, block_table, query_starts, key_counts, causal, leading,
            out, partial, partial_weights, scale=scale, window=window, rule=rule, splits=splits,
        )  # fmt: skip
        return parts
    # Offsets of 32 bits leave more registers to the accumulators.
    far = any(pages.shape[0] * pages.stride(0) >= 2**31 for pages in (key_pages, value_pages))
    blocks = tokens // (tiling.block_m // group) + sequences
    _attend_kernel[(blocks, key_heads * tiling.value_parts, splits)](
        query, key_pages, value_pages, block_table, query_starts, key_counts, causal,
        leading, out, partial, partial_weights, *query.stride()[:2], *key_pages.stride()[:3],
        *value_pages.stride()[:3], block_table.stride(0), *out.stride()[:2], tokens, sequences,
        splits, scale * LOG2_E, 0 if window is None else window, GROUP=group, KEY_HEADS=key_heads,
        HEAD_DIM=head_dim, VALUE_PARTS=tiling.value_parts, PAGE=page_size, FAR=far,
        RULE="full" if window is None else rule, JOINED=splits > 1,
        LEADING=leading is not None, SEQUENCES_PADDED=triton.next_power_of_2(sequences),
        BLOCK_M=tiling.block_m, BLOCK_N=tiling.block_n,
        PRECISION="ieee" if query.dtype == torch.float32 else "tf32",
        num_warps=tiling.warps, num_stages=tiling.stages,
    )  # fmt: skip
    return parts
