"""Argmax, draw, entropy, log-sum-exp and top-k of wide rows of logits in one read.

Two launches. The first reads every logit once, a tile of the vocabulary at a time anywhere on the
chip, and leaves three sums per tile and the greatest logit of every small group. The second, one
program a row, adds the sums up and rereads what it still needs: the tile of the argmax, the tile
drawn, and the k groups with the greatest maxima, which hold the k greatest logits. Nothing depends
on how the tiles were spread. Sums: online softmax (Milakov and Gimelshein 2018), shifted so that
a sure row's entropy keeps its digits; the draw: dg_kernels.reference.draw.
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

from dg_kernels.logits import load_tempered
from dg_kernels.reference import TILE, RowStats

GROUP = 64
"""Tokens whose greatest logit is kept; top-k rereads k such groups."""
MAX_TOP_K = 64


class Spread(NamedTuple):
    """How the first launch lies on the chip; no result depends on it."""

    tiles_per_program: int = 1
    warps: int = 8
    finish_warps: int = 8


ONE_TILE_EACH = Spread()
OF_SHORT_NUMBERS = Spread(warps=4)
"""For logits of 16 bits."""


@triton.jit
def _tile_kernel(
    logits,
    row_stride,
    inverse_temperature,
    classes,
    bans,
    active,
    tile_sums,
    group_maxima,
    vocab,
    tiles,
    groups,
    SOFTCAP: tl.constexpr,
    BANS: tl.constexpr,
    ACTIVE: tl.constexpr,
    FAST: tl.constexpr,
    TOP: tl.constexpr,
    TILE: tl.constexpr,
    GROUP: tl.constexpr,
    TILES_PER_PROGRAM: tl.constexpr,
):
    row = tl.program_id(1).to(tl.int64)
    if ACTIVE:
        if tl.load(active + row) == 0:
            return
    scale = tl.load(inverse_temperature + row)
    row_bans = tl.load(bans + row) if BANS else 0
    in_tile = tl.arange(0, TILE // GROUP)
    offsets = in_tile[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    first = tl.program_id(0) * TILES_PER_PROGRAM
    for tile in range(first, tl.minimum(first + TILES_PER_PROGRAM, tiles)):
        ids = tile * TILE + offsets
        x = load_tempered(
            logits + row * row_stride, ids, ids < vocab, scale, classes, row_bans,
            SOFTCAP, BANS, FAST,
        )  # fmt: skip
        maxima = tl.max(x, 1)
        if TOP:
            group = tile * (TILE // GROUP) + in_tile
            tl.store(group_maxima + row * groups + group, maxima, mask=group < groups)
        greatest = tl.max(maxima, 0)
        below = x - tl.where(greatest == float("-inf"), 0.0, greatest)
        weight = tl.exp(below)
        moment = tl.where(weight > 0, below, 0.0) * weight
        sums = tile_sums + (row * tiles + tile) * 3
        tl.store(sums, greatest)
        tl.store(sums + 1, tl.sum(tl.sum(weight, 1), 0))
        tl.store(sums + 2, tl.sum(tl.sum(moment, 1), 0))


@triton.jit
def _gumbel(seed, counters):
    uniform = tl.maximum(tl.rand(seed, counters), 1.1754943508222875e-38)
    return -tl.log(tl.maximum(-tl.log(uniform), 1.1754943508222875e-38))


@triton.jit
def _ordered(x):
    """float32 to int32 of the same order; -inf lies above the least int32."""
    bits = x.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _greatest(keys, count):
    """The `count` greatest of int32 keys as bools, the first ones where keys tie.

    The count-th greatest key is found bit by bit from the top.
    """
    unsigned = keys.to(tl.uint32, bitcast=True) ^ 0x80000000
    threshold = tl.full((), 0, tl.uint32)
    bit = tl.full((), 0x80000000, tl.uint32)
    for _ in range(32):
        trial = threshold | bit
        enough = tl.sum((unsigned >= trial).to(tl.int32), 0) >= count
        threshold = tl.where(enough, trial, threshold)
        bit = bit >> 1
    above = unsigned > threshold
    equal = (unsigned == threshold).to(tl.int32)
    room = count - tl.sum(above.to(tl.int32), 0)
    return above | ((equal > 0) & (tl.cumsum(equal, 0) <= room))


@triton.jit
def _finish_kernel(
    logits,
    row_stride,
    inverse_temperature,
    seeds,
    classes,
    bans,
    active,
    tile_sums,
    group_maxima,
    chosen_groups,
    chosen_tokens,
    argmax_out,
    log_sum_exp_out,
    entropy_out,
    sample_out,
    top_logits_out,
    top_ids_out,
    vocab,
    tiles,
    groups,
    SOFTCAP: tl.constexpr,
    BANS: tl.constexpr,
    ACTIVE: tl.constexpr,
    FAST: tl.constexpr,
    SAMPLE: tl.constexpr,
    TOP: tl.constexpr,
    TOP_PADDED: tl.constexpr,
    TILE: tl.constexpr,
    TILES_PADDED: tl.constexpr,
    GROUP: tl.constexpr,
    GROUPS_PADDED: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, TOP_PADDED)
    top_out = row * TOP + slot
    if ACTIVE:
        if tl.load(active + row) == 0:
            tl.store(argmax_out + row, 0)
            tl.store(log_sum_exp_out + row, 0.0)
            tl.store(entropy_out + row, 0.0)
            if SAMPLE:
                tl.store(sample_out + row, 0)
            if TOP > 0:
                tl.store(top_logits_out + top_out, tl.zeros_like(slot), mask=slot < TOP)
                tl.store(top_ids_out + top_out, tl.zeros_like(slot), mask=slot < TOP)
            return
    row_logits = logits + row * row_stride
    scale = tl.load(inverse_temperature + row)
    row_bans = tl.load(bans + row) if BANS else 0
    in_tile = tl.arange(0, TILE)

    tile = tl.arange(0, TILES_PADDED)
    sums = tile_sums + (row * tiles + tile) * 3
    greatest = tl.load(sums, mask=tile < tiles, other=float("-inf"))
    weight = tl.load(sums + 1, mask=tile < tiles, other=0.0)
    moment = tl.load(sums + 2, mask=tile < tiles, other=0.0)
    top = tl.max(greatest, 0)
    shift = tl.where(top == float("-inf"), 0.0, top)
    below = tl.where(weight > 0, greatest - shift, 0.0)
    factor = tl.where(weight > 0, tl.exp(below), 0.0)
    total = tl.sum(factor * weight, 0)
    mean = tl.sum(factor * (moment + below * weight), 0) / tl.where(total > 0, total, 1.0)
    log_total = tl.log(total)
    tl.store(log_sum_exp_out + row, shift + log_total)
    tl.store(entropy_out + row, tl.where(total > 0, tl.maximum(log_total - mean, 0.0), 0.0))

    best_tile = tl.argmax(greatest, 0)
    ids = best_tile * TILE + in_tile
    x = load_tempered(
        row_logits, ids, ids < vocab, scale, classes, row_bans, SOFTCAP, BANS, FAST
    )  # fmt: skip
    tl.store(argmax_out + row, best_tile * TILE + tl.argmax(x, 0))

    if SAMPLE:
        seed = tl.load(seeds + row)
        drawn_tile = tl.argmax(greatest + tl.log(weight) + _gumbel(seed, -1 - tile), 0)
        ids = drawn_tile * TILE + in_tile
        x = load_tempered(
            row_logits, ids, ids < vocab, scale, classes, row_bans, SOFTCAP, BANS, FAST
        )  # fmt: skip
        tl.store(sample_out + row, drawn_tile * TILE + tl.argmax(x + _gumbel(seed, ids), 0))

    if TOP > 0:
        LEAST: tl.constexpr = -2147483648
        group = tl.arange(0, GROUPS_PADDED)
        maxima = tl.load(group_maxima + row * groups + group, mask=group < groups, other=0.0)
        wanted = tl.minimum(groups, TOP)
        chosen = _greatest(tl.where(group < groups, _ordered(maxima), LEAST), wanted)
        place = row * TOP_PADDED + tl.cumsum(chosen.to(tl.int32), 0) - 1
        tl.store(chosen_groups + place, group, mask=chosen)
        tl.debug_barrier()
        read = tl.load(chosen_groups + row * TOP_PADDED + slot, mask=slot < wanted, other=groups)
        ids = tl.reshape(
            read[:, None] * GROUP + tl.arange(0, GROUP)[None, :], [TOP_PADDED * GROUP]
        )  # fmt: skip
        x = load_tempered(
            row_logits, ids, ids < vocab, scale, classes, row_bans, SOFTCAP, BANS, FAST
        )  # fmt: skip
        keys = tl.where(ids < vocab, _ordered(x), LEAST)
        chosen = _greatest(keys, TOP)
        place = row * TOP_PADDED + tl.cumsum(chosen.to(tl.int32), 0) - 1
        packed = (keys.to(tl.int64) << 32) | (0x7FFFFFFF - ids)
        tl.store(chosen_tokens + place, packed, mask=chosen)
        tl.debug_barrier()
        mine = tl.load(chosen_tokens + row * TOP_PADDED + slot, mask=slot < TOP, other=0)
        other = tl.arange(0, TOP_PADDED)
        theirs = tl.load(chosen_tokens + row * TOP_PADDED + other, mask=other < TOP, other=0)
        ahead = (theirs[None, :] > mine[:, None]) & (other[None, :] < TOP)
        rank = row * TOP + tl.sum(ahead.to(tl.int32), 1)
        key = (mine >> 32).to(tl.int32)
        value = (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
        tl.store(top_logits_out + rank, value, mask=slot < TOP)
        tl.store(top_ids_out + rank, 0x7FFFFFFF - (mine & 0x7FFFFFFF), mask=slot < TOP)


def row_stats(
    logits: Tensor,
    temperature: Tensor,
    *,
    softcap: float = 0.0,
    top_k: int = 0,
    seeds: Tensor | None = None,
    classes: Tensor | None = None,
    bans: Tensor | None = None,
    active: Tensor | None = None,
    fast_tanh: bool = False,
    tile: int = TILE,
    spread: Spread | None = None,
) -> RowStats:
    """Statistics of each row of logits; see RowStats for what comes back.

    Args:
        logits: before the softcap, float32, float16 or bfloat16 [rows, vocab], last stride 1.
            -inf is a ban.
        temperature: above 0, float32 [rows].
        softcap: 0 for none.
        top_k: how many of the likeliest tokens are returned, 0 to 64.
        seeds: int64 [rows], everything that the draw depends on besides the logits; without them
            nothing is drawn.
        classes, bans: bit sets, uint8 [vocab] and [rows]: a row never takes a token that shares a
            bit with it.
        active: rows that count, bool [rows]; all by default.
        fast_tanh: see dg_kernels.logits.tanh; on a GPU only.
        tile: tokens drawn from together, a power of two from 64 up; changes what a seed draws.
        spread: see Spread; what was fastest on an H200 where it is left out.

    Raises ValueError for shapes that do not fit. Nothing is read back to the host, and no shape
    depends on what the device holds, so a CUDA graph can hold it.
    """
    rows, vocab = logits.shape
    if logits.stride(1) != 1:
        raise ValueError("Logits must be contiguous along the vocabulary; call contiguous().")
    if not 0 <= top_k <= min(MAX_TOP_K, vocab):
        raise ValueError(f"top_k is {top_k}; give 0 to {min(MAX_TOP_K, vocab)}.")
    if (classes is None) != (bans is None):
        raise ValueError("classes and bans belong together; give both or neither.")
    device = logits.device
    tiles, groups = triton.cdiv(vocab, tile), triton.cdiv(vocab, GROUP)
    padded = triton.next_power_of_2(max(top_k, 1))

    def floats(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=device)

    def ids(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int64, device=device)

    tile_sums, group_maxima = floats(rows, tiles, 3), floats(rows, groups if top_k else 0)
    stats = RowStats(
        ids(rows), floats(rows), floats(rows), None if seeds is None else ids(rows),
        floats(rows, top_k), ids(rows, top_k),
    )  # fmt: skip
    if rows == 0:
        return stats
    if spread is None:
        spread = OF_SHORT_NUMBERS if logits.element_size() == 2 else ONE_TILE_EACH
    inverse = 1.0 / temperature
    flags = {
        "SOFTCAP": softcap, "BANS": bans is not None, "ACTIVE": active is not None,
        "FAST": fast_tanh, "TILE": tile, "GROUP": GROUP,
    }  # fmt: skip
    _tile_kernel[(triton.cdiv(tiles, spread.tiles_per_program), rows)](
        logits, logits.stride(0), inverse, classes, bans, active, tile_sums, group_maxima,
        vocab, tiles, groups, TOP=top_k > 0, TILES_PER_PROGRAM=spread.tiles_per_program,
        num_warps=spread.warps, **flags,
    )  # fmt: skip
    _finish_kernel[(rows,)](
        logits, logits.stride(0), inverse, seeds, classes, bans, active, tile_sums, group_maxima,
        torch.empty((rows, padded), dtype=torch.int32, device=device), ids(rows, padded),
        *stats, vocab, tiles, groups, SAMPLE=seeds is not None, TOP=top_k, TOP_PADDED=padded,
        TILES_PADDED=triton.next_power_of_2(tiles), GROUPS_PADDED=triton.next_power_of_2(groups),
        num_warps=spread.finish_warps, **flags,
    )  # fmt: skip
    return stats
