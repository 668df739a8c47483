"""The mathematics of every kernel in plain PyTorch, for tests and for where Triton is missing.

Everything is computed in float32 whatever the input, one whole tensor at a time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

TILE = 4096
"""Tokens drawn from together; a constant of the draw, so a seed gives one token on any launch."""


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
    # Stable, so that the lower id comes first.
    order = found.argsort(dim=-1, descending=True, stable=True)[:, :top_k]
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
    return RowStats(
        *(
            None if part is None else part.masked_fill(~active.view(-1, *[1] * (part.dim() - 1)), 0)
            for part in stats
        )
    )


def draw(found: Tensor, seeds: Tensor, tile: int = TILE) -> Tensor:
    """One token per row from softmax(found), float32 [rows, vocab], by Gumbel-max in two levels.

    The greatest of a tile's perturbed logits is a Gumbel variable around the tile's log-sum-exp
    (Maddison, Tarlow and Minka 2014), so a tile is drawn by one number each, then a token in it.
    """
    rows, vocab = found.shape
    tiles = -(-vocab // tile)
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
    seeds, counters = torch.broadcast_tensors(seeds, counters)
    key_low, key_high = seeds & word, (seeds >> 32) & word
    zero = torch.zeros_like(counters)
    state = (counters & word, zero, zero, zero)
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
