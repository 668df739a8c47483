"""From one product's output to queries, and to keys and values in their pages, in one launch.

Gemma 4 norms queries, keys and values by head, the values without a weight, and turns queries and
keys by their position. Rounding is where the model's own operations round.
Reference: dg_kernels.reference.rotate.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_HEADS = 8
"""Of a program."""


@triton.jit
def _rotate_kernel(
    qkv, positions, turns, query_weight, key_weight, slots, query, key_pages, value_pages, epsilon,
    slot_count, turns_stride, key_page_stride, key_token_stride, key_head_stride,
    value_page_stride, value_token_stride, value_head_stride, page_size,
    HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, SIZE: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * AT_ONCE
    HALF: tl.constexpr = SIZE // 2
    head = tl.arange(0, AT_ONCE)
    column = tl.arange(0, HALF)
    at = qkv + row * (HEADS + 2 * KEY_HEADS) * SIZE + (first + head[:, None]) * SIZE
    kept = qkv.dtype.element_ty
    # Everything is asked for first: a program is a chain of latencies.
    low = tl.load(at + column[None, :]).to(tl.float32)
    high = tl.load(at + HALF + column[None, :]).to(tl.float32)
    slot = tl.load(slots + row, mask=row < slot_count, other=-1).to(tl.int64)
    turned = first < HEADS + KEY_HEADS
    weight = (query_weight if first < HEADS else key_weight) + column
    turn = turns + tl.load(positions + row) * turns_stride + column
    low_weight = tl.load(weight, mask=turned, other=0.0)[None, :].to(tl.float32)
    high_weight = tl.load(weight + HALF, mask=turned, other=0.0)[None, :].to(tl.float32)
    cosine = tl.load(turn, mask=turned, other=0.0)[None, :].to(tl.float32)
    sine = tl.load(turn + HALF, mask=turned, other=0.0)[None, :].to(tl.float32)
    square = (tl.sum(low * low, 1) + tl.sum(high * high, 1)) / SIZE
    root = tl.rsqrt(square + epsilon)[:, None]
    low, high = (low * root).to(kept).to(tl.float32), (high * root).to(kept).to(tl.float32)
    if turned:
        low, high = low * low_weight, high * high_weight
        low, high = low.to(kept).to(tl.float32), high.to(kept).to(tl.float32)
        low, high = low * cosine - high * sine, high * cosine + low * sine
    if first < HEADS:
        to = query + (row * HEADS + first + head[:, None]) * SIZE + column[None, :]
        tl.store(to, low.to(kept), eviction_policy="evict_last")
        tl.store(to + HALF, high.to(kept), eviction_policy="evict_last")
    elif slot >= 0:
        page, token = slot // page_size, slot % page_size
        if turned:
            own = (first - HEADS + head[:, None]).to(tl.int64)
            to = key_pages + page * key_page_stride + token * key_token_stride
            to += own * key_head_stride + column[None, :]
            tl.store(to, low.to(key_pages.dtype.element_ty))
            tl.store(to + HALF, high.to(key_pages.dtype.element_ty))
        else:
            own = (first - HEADS - KEY_HEADS + head[:, None]).to(tl.int64)
            to = value_pages + page * value_page_stride + token * value_token_stride
            to += own * value_head_stride + column[None, :]
            tl.store(to, low.to(value_pages.dtype.element_ty))
            tl.store(to + HALF, high.to(value_pages.dtype.element_ty))


def rotate(
    qkv: Tensor,
    positions: Tensor,
    turns: Tensor,
    query_weight: Tensor,
    key_weight: Tensor,
    epsilon: float,
    heads: int,
    pages: tuple[Tensor, Tensor] | None,
    slots: Tensor | None,
) -> Tensor:
    """Queries [rows, heads, head_dim]; keys and values are written where the slots say.

    Args:
        qkv: [rows, (heads + 2 * key_heads) * head_dim], contiguous; queries, keys, values.
        positions: of the rows, integers.
        turns: cosines, then sines, of each position [positions, head_dim]; rows may be apart.
        query_weight: of the queries' norm [head_dim].
        key_weight: of the keys' norm [head_dim]; the values' norm has none.
        epsilon: of the norms.
        heads: of the queries.
        pages: of keys and of values [pages, page_size, key_heads, head_dim], or nothing to write.
        slots: page * page_size + place in it, for the first rows; negative for a row that is
            written nowhere. Without it nothing is written.

    Raises ValueError for sizes that do not fit.
    """
    size = query_weight.shape[0]
    rows, all_heads = qkv.shape[0], qkv.shape[1] // size
    key_heads = (all_heads - heads) // 2
    if all_heads * size != qkv.shape[1] or heads + 2 * key_heads != all_heads or key_heads < 1:
        raise ValueError("Give queries, keys and values of whole heads.")
    if not qkv.is_contiguous() or turns.shape[1] != size or turns.stride(1) != 1:
        raise ValueError("Give contiguous rows, and turns of a head's size.")
    if pages is not None and (
        pages[0].shape != pages[1].shape or pages[0].shape[2:] != (key_heads, size)
    ):
        raise ValueError("Give pages of [page_size, key_heads, head_dim].")
    query = torch.empty(rows, heads, size, dtype=qkv.dtype, device=qkv.device)
    if pages is None or slots is None:
        pages, slots = (query[None], query[None]), positions[:0]
    at_once = math.gcd(math.gcd(heads, key_heads), MOST_HEADS)
    keys, values = pages
    _rotate_kernel[(rows, all_heads // at_once)](
        qkv, positions, turns, query_weight, key_weight, slots, query, keys, values, epsilon,
        slots.shape[0], turns.stride(0), *keys.stride()[:3], *values.stride()[:3], keys.shape[1],
        HEADS=heads, KEY_HEADS=key_heads, SIZE=size, AT_ONCE=at_once, num_warps=4,
    )  # fmt: skip
    return query
