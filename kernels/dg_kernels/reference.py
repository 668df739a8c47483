"""The mathematics of every kernel in plain PyTorch, for tests and for where Triton is missing.

Everything is computed in float32 whatever the input, one whole tensor at a time.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

MaskRule = Literal["anchored", "symmetric"]
"""How a sliding window bounds a two-sided sequence; see canvas_attention."""
TILE = 4096
"""Tokens drawn from together; a constant of the draw, so a seed gives one token on any launch."""


FP8 = torch.float8_e4m3fn
GREATEST = 448.0
"""Of float8_e4m3fn."""
LEAST_SCALE = 1 / (448.0 * 512.0)
"""Of a row that is quantised, as in vLLM: a row of zeros stays one."""


class Norms(NamedTuple):
    """Weights of the norms of one feed-forward block, each [hidden]."""

    attended: Tensor
    """Of the attention's output, before its residual is added."""
    dense_in: Tensor
    routed_in: Tensor
    router: Tensor
    """Of the router, which has no norm's weight but a scale of its own."""
    dense_out: Tensor
    routed_out: Tensor
    out: Tensor
    """Of the sum of both parts."""
    epsilon: float


class Entered(NamedTuple):
    """What a feed-forward block reads."""

    total: Tensor
    """The next residual [rows, hidden]."""
    dense: Tensor
    """Quantised [rows, hidden]."""
    dense_scales: Tensor
    """float32 [rows, 1]."""
    routed: Tensor
    routed_scales: Tensor
    router: Tensor
    """[rows, hidden]."""


class RowStats(NamedTuple):
    """What one read of a row of logits finds; of an inactive row everything is 0."""

    argmax: Tensor
    """int64 [rows]; the lowest id of several that tie, 0 where every token is banned."""
    log_sum_exp: Tensor
    """float32 [rows], of the tempered logits; -inf where every token is banned."""
    entropy: Tensor
    """Nats, float32 [rows]; 0 where every token is banned."""
    sample: Tensor | None
    """One token drawn from the softmax, int64 [rows]; None without seeds."""
    top_logits: Tensor
    """Tempered logits of the likeliest tokens, greatest first, float32 [rows, k]."""
    top_ids: Tensor
    """Their ids, int64 [rows, k]; the lower id first where logits tie."""


def softcapped(logits: Tensor, softcap: float) -> Tensor:
    """softcap * tanh(logits / softcap) in float32, [...]; 0 is no cap; -inf is a ban and stays."""
    logits = logits.float()
    if softcap == 0:
        return logits
    return (torch.tanh(logits / softcap) * softcap).masked_fill(logits == -math.inf, -math.inf)


def tempered(
    logits: Tensor,
    temperature: Tensor,
    *,
    softcap: float = 0.0,
    classes: Tensor | None = None,
    bans: Tensor | None = None,
) -> Tensor:
    """The logits that are sampled from; the arguments are those of `row_stats`."""
    found = softcapped(logits, softcap) / temperature[:, None]
    if classes is not None and bans is not None:
        found = found.masked_fill((classes & bans[:, None]) != 0, -math.inf)
    return found


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
    tile: int = TILE,
) -> RowStats:
    """See dg_kernels.row_stats.row_stats."""
    found = tempered(logits, temperature, softcap=softcap, classes=classes, bans=bans)
    log_sum_exp = torch.logsumexp(found, -1)
    probabilities = torch.softmax(found, -1).nan_to_num(0.0)
    weighted = torch.where(probabilities > 0, (found - log_sum_exp[:, None]) * probabilities, 0.0)
    # Stable, so that the lower id comes first; sorting nothing where nothing is wanted.
    sorted_part = found if top_k else found[:, :0]
    order = sorted_part.argsort(dim=-1, descending=True, stable=True)[:, :top_k].contiguous()
    stats = RowStats(
        found.argmax(-1),
        log_sum_exp,
        -weighted.sum(-1),
        None if seeds is None else draw(found, seeds, tile),
        found.gather(-1, order),
        order,
    )
    if active is None:
        return stats

    def kept(part: Tensor) -> Tensor:
        return part.masked_fill(~active.view(-1, *[1] * (part.dim() - 1)), 0)

    return RowStats(
        kept(stats.argmax),
        kept(stats.log_sum_exp),
        kept(stats.entropy),
        None if stats.sample is None else kept(stats.sample),
        kept(stats.top_logits),
        kept(stats.top_ids),
    )


def draw(found: Tensor, seeds: Tensor, tile: int = TILE) -> Tensor:
    """One token per row from softmax(found), float32 [rows, vocab], by Gumbel-max in two levels.

    The greatest of a tile's perturbed logits is a Gumbel variable around the tile's log-sum-exp
    (Maddison, Tarlow and Minka 2014), so a tile is drawn by one number each, then a token in it.
    """
    rows, vocab = found.shape
    tiles = -(-vocab // tile)
    tile = min(tile, vocab)  # padding is never drawn
    padded = torch.nn.functional.pad(found, (0, tiles * tile - vocab), value=-math.inf)
    by_tile = padded.view(rows, tiles, tile)
    counters = -1 - torch.arange(tiles, device=found.device)
    chosen = (torch.logsumexp(by_tile, -1) + gumbel(seeds[:, None], counters)).argmax(-1)
    inside = by_tile[torch.arange(rows, device=found.device), chosen]
    ids = chosen[:, None] * tile + torch.arange(tile, device=found.device)
    best = (inside + gumbel(seeds[:, None], ids)).argmax(-1)
    return chosen * tile + best


def gumbel(seeds: Tensor, counters: Tensor) -> Tensor:
    """-log(-log u), float32; u is the first word of Philox 4x32-10 as triton.language.rand has it.

    Seeds and counters are int64 and broadcast; a counter counts modulo 2**32.
    """
    bits = philox(seeds, counters)
    signed = torch.where(bits >= 2**31, bits - 2**32, bits)
    uniform = torch.where(signed < 0, -signed - 1, signed).float() * 4.6566127342e-10
    tiny = torch.finfo(torch.float32).tiny
    return -torch.log((-torch.log(uniform.clamp_min(tiny))).clamp_min(tiny))


def philox(seeds: Tensor, counters: Tensor) -> Tensor:
    """First word of Philox 4x32-10 (Salmon et al. 2011), int64 in [0, 2**32)."""
    word = 2**32 - 1
    key_low, key_high = seeds & word, (seeds >> 32) & word
    zero = torch.zeros_like(seeds + counters)
    state = (zero + (counters & word), zero, zero, zero)
    for _ in range(10):
        low_b, high_b = _product(state[2], 0xCD9E8D57)
        low_a, high_a = _product(state[0], 0xD2511F53)
        state = (high_b ^ state[1] ^ key_low, low_b, high_a ^ state[3] ^ key_high, low_a)
        key_low, key_high = (key_low + 0x9E3779B9) & word, (key_high + 0xBB67AE85) & word
    return state[0]


def _product(word: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """Low and high half of a 32 by 32 bit product, in int64 without overflow."""
    half = 2**16 - 1
    low, high = word * (factor & half), word * (factor >> 16)
    middle = (low >> 16) + (high & half)
    return ((middle & half) << 16) | (low & half), (high >> 16) + (middle >> 16)


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
    leading: Tensor | None = None,
) -> Tensor:
    """See dg_kernels.canvas_attention.canvas_attention; rows behind the last sequence's are 0."""
    heads, page_size = query.shape[1], key_pages.shape[1]
    group = heads // key_pages.shape[2]
    out = torch.zeros_like(query, dtype=torch.float32)
    starts = [int(start) for start in query_starts]
    for sequence, keys in enumerate(int(count) for count in key_counts):
        begin, end = starts[sequence], starts[sequence + 1]
        pages = block_table[sequence, : -(-keys // page_size)].long()
        key, value = (
            cached[pages].flatten(0, 1)[:keys].float().repeat_interleave(group, 1)
            for cached in (key_pages, value_pages)
        )
        scores = torch.einsum("qhd,khd->hqk", query[begin:end].float(), key) * scale
        lead = 0 if leading is None else int(leading[sequence])
        seen = visible(
            end - begin, keys, causal=bool(causal[sequence]), window=window, rule=rule, leading=lead
        ).to(query.device)
        weights = torch.softmax(scores.masked_fill(~seen, -math.inf), -1).nan_to_num(0.0)
        out[begin:end] = torch.einsum("hqk,khd->qhd", weights, value)
    return out


def visible(
    queries: int,
    keys: int,
    *,
    causal: bool,
    window: int | None,
    rule: MaskRule,
    leading: int = 0,
) -> Tensor:
    """Which keys the newest `queries` of `keys` tokens see, bool [queries, keys].

    The first `leading` of them are causal in any case, and see nothing of the others.
    """
    if leading and not causal:
        others = queries - leading
        first = visible(leading, keys - others, causal=True, window=window, rule=rule)
        rest = visible(others, keys, causal=False, window=window, rule=rule)
        return torch.cat((torch.nn.functional.pad(first, (0, others)), rest))
    past = keys - queries
    query = torch.arange(past, keys)[:, None]
    key = torch.arange(keys)[None, :]
    seen = key <= query if causal else torch.ones(queries, keys, dtype=torch.bool)
    if window is None:
        return seen
    if causal:
        return seen & (key > query - window)
    if rule == "anchored":
        return seen & (key > past - window)
    return (key - query).abs() < window


def soft_embedding(top_logits: Tensor, top_ids: Tensor, table: Tensor, *, scale: float) -> Tensor:
    """See dg_kernels.soft_embedding.soft_embedding; float32."""
    weights = torch.softmax(top_logits.float(), -1).nan_to_num(0.0)
    return torch.einsum("rk,rkh->rh", weights, table[top_ids].float()) * scale


def full_soft_embedding(found: Tensor, table: Tensor, *, scale: float) -> Tensor:
    """softmax(found) @ table * scale over the whole vocabulary, as the published model does it.

    found: tempered logits [rows, vocab]; table [vocab, hidden]. The probabilities are rounded to
    the table's dtype, in which the product is made and returned [rows, hidden].
    """
    return (torch.softmax(found.float(), -1).to(table.dtype) @ table) * scale


class Truncation(NamedTuple):
    """What conditioning on k tokens loses against the full sum, per row, float32 [rows]."""

    dropped: Tensor
    """Probability of the tokens left out, before renormalising."""
    error: Tensor
    """Euclidean distance to the full sum over the full sum's length."""


def truncation(found: Tensor, table: Tensor, top_k: int) -> Truncation:
    """Measure soft_embedding of `top_k` tokens; found [rows, vocab], table [vocab, hidden].

    `found` is tempered. All in float32, so that only leaving tokens out counts.
    """
    top_logits, top_ids = found.float().topk(top_k, -1)
    full = full_soft_embedding(found, table.float(), scale=1.0)
    kept = soft_embedding(top_logits, top_ids, table, scale=1.0)
    mass = torch.softmax(found.float(), -1).gather(-1, top_ids).sum(-1)
    return Truncation(1.0 - mass, _lengths(kept - full) / _lengths(full))


def _lengths(vectors: Tensor) -> Tensor:
    """Euclidean, [rows, hidden] -> [rows]."""
    return vectors.square().sum(-1).sqrt()


def suffix_alignment(
    logits: Tensor,
    temperature: Tensor,
    log_sum_exp: Tensor,
    suffix: Tensor,
    suffix_counts: Tensor,
    *,
    softcap: float = 0.0,
) -> Tensor:
    """See dg_kernels.suffix_alignment.suffix_alignment."""
    canvases, canvas, _ = logits.shape
    found = softcapped(logits, softcap) / temperature[..., None]
    scores = torch.zeros(canvases, canvas, device=logits.device)
    for which in range(canvases):
        for offset in range(canvas):
            for j in range(min(int(suffix_counts[which]), canvas - offset)):
                x = found[which, offset + j, suffix[which, j]]
                banned = x == -math.inf
                scores[which, offset] += x if banned else x - log_sum_exp[which, offset + j]
    return scores


def rounded_root(size: int, dtype: torch.dtype) -> float:
    """1 / sqrt(size), rounded as a router rounds it."""
    return float(torch.tensor(size**-0.5, dtype=dtype))


def normed(rows: Tensor, weight: Tensor | None, epsilon: float) -> Tensor:
    """Root-mean-square norm over the last axis; the root is rounded before the weight, as vLLM does
    it."""
    wide = rows.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    return wide.to(rows.dtype) if weight is None else wide.to(rows.dtype) * weight


def quantised(rows: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Rows in `dtype`, up to GREATEST, and their scales, float32 [rows, 1]."""
    wide = rows.float()
    scales = (wide.abs().amax(-1, keepdim=True) / GREATEST).clamp_min(LEAST_SCALE)
    return (wide / scales).clamp(-GREATEST, GREATEST).to(dtype), scales


def enter(attended: Tensor, residual: Tensor, norms: Norms, dtype: torch.dtype = FP8) -> Entered:
    """See dg_kernels.feed_forward.enter."""
    total = normed(attended, norms.attended, norms.epsilon) + residual
    shared = normed(total, None, norms.epsilon)
    root = rounded_root(total.shape[1], total.dtype)
    return Entered(
        total,
        *quantised(shared * norms.dense_in, dtype),
        *quantised(shared * norms.routed_in, dtype),
        shared * root * norms.router,
    )


def activate(gate_up: Tensor, dtype: torch.dtype = FP8) -> tuple[Tensor, Tensor]:
    """See dg_kernels.feed_forward.activate."""
    gate, up = gate_up.float().chunk(2, -1)
    active = torch.nn.functional.gelu(gate, approximate="tanh") * up
    return quantised(active.to(gate_up.dtype), dtype)


class Left(NamedTuple):
    """What a block leaves to the next layer."""

    out: Tensor
    """Its output [rows, hidden]."""
    rows: Tensor
    """Normed and multiplied by the next layer's first product; nothing for the last layer."""
    scales: Tensor
    """Of those rows, float32 [rows, 1]."""


class Places(NamedTuple):
    """Assignments sorted by expert, each expert's padded to whole blocks of rows."""

    rows: Tensor
    """Numbers of assignments, int32; padding is the number of assignments."""
    experts: Tensor
    """Expert of each block, int32."""
    total: Tensor
    """Rows in use, padding included, int32 [1]; what lies behind them means nothing."""
    made: Tensor
    """Zeros, int32 [blocks]: `dg_kernels.hopper_experts.feed` counts here, once."""


def place(ids: Tensor, experts: int, block: int) -> Places:
    """See dg_kernels.experts.place; without anything behind the rows in use."""
    flat = ids.flatten().cpu()
    rows: list[Tensor] = []
    of: list[int] = []
    for expert in range(experts):
        mine = (flat == expert).nonzero().flatten().int()
        padding = -len(mine) % block
        rows += [mine, torch.full((padding,), len(flat), dtype=torch.int32)]
        of += [expert] * ((len(mine) + padding) // block)
    found = torch.cat(rows).to(ids.device)
    return Places(
        found,
        torch.tensor(of, dtype=torch.int32, device=ids.device),
        torch.tensor([len(found)], dtype=torch.int32, device=ids.device),
        torch.zeros(len(of), dtype=torch.int32, device=ids.device),
    )


def multiply(
    rows: Tensor,
    row_scales: Tensor,
    experts: Tensor,
    expert_scales: Tensor,
    ids: Tensor,
    *,
    weights: Tensor | None = None,
    copies: int = 1,
) -> Tensor:
    """See dg_kernels.experts.multiply; float32, from the chosen expert of each assignment."""
    wide = (rows.float() * row_scales.view(-1, 1)).repeat_interleave(copies, 0)
    scaled = experts.float() * expert_scales.view(*experts.shape[:2], 1)
    found = torch.einsum("acd,ad->ac", scaled[ids.flatten().long()], wide)
    return found if weights is None else found * weights.view(-1, 1)


def feed(
    rows: Tensor,
    row_scales: Tensor,
    experts_in: Tensor,
    in_scales: Tensor,
    experts_out: Tensor,
    out_scales: Tensor,
    ids: Tensor,
    weights: Tensor,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """See dg_kernels.hopper_experts.feed; float32, with what lies between rounded to `dtype`."""
    copies = ids.numel() // len(rows)
    gate_up = multiply(rows, row_scales, experts_in, in_scales, ids, copies=copies).to(dtype)
    return multiply(*activate(gate_up), experts_out, out_scales, ids, weights=weights)


def leave(dense: Tensor, routed: Tensor, total: Tensor, norms: Norms, scalar: Tensor) -> Tensor:
    """See dg_kernels.feed_forward.leave."""
    mixed = normed(routed.float().sum(1).to(total.dtype), norms.routed_out, norms.epsilon)
    both = normed(dense, norms.dense_out, norms.epsilon) + mixed
    return (normed(both, norms.out, norms.epsilon) + total) * scalar


def leave_for(
    dense: Tensor,
    routed: Tensor,
    total: Tensor,
    norms: Norms,
    scalar: Tensor,
    following: Tensor,
    dtype: torch.dtype = FP8,
) -> Left:
    """See dg_kernels.feed_forward.leave_for."""
    out = leave(dense, routed, total, norms, scalar)
    return Left(out, *quantised(normed(out, following, norms.epsilon), dtype))


def rotate(
    qkv: Tensor,
    positions: Tensor,
    turns: Tensor,
    query_weight: Tensor,
    key_weight: Tensor,
    epsilon: float,
    heads: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """See dg_kernels.rotate.rotate; queries, keys and values [rows, heads of each, head_dim]."""
    size = len(query_weight)
    split = qkv.view(len(qkv), -1, size)
    key_heads = (split.shape[1] - heads) // 2
    query, key = split[:, :heads], split[:, heads : heads + key_heads]
    value = split[:, heads + key_heads :]
    cosine, sine = turns[positions].float()[:, None].chunk(2, -1)

    def turned(rows: Tensor, weight: Tensor) -> Tensor:
        low, high = normed(rows, weight, epsilon).float().chunk(2, -1)
        whole = torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1)
        return whole.to(rows.dtype)

    return turned(query, query_weight), turned(key, key_weight), normed(value, None, epsilon)
