"""Masks of the two modes, rotary tables, and attention over a prompt that all rows share."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dg_engine.job import MaskRule
from dg_engine.model_config import RopeConfig


class Mask(NamedTuple):
    """Which keys a query may see; None where it sees all."""

    prompt: Tensor | None
    """Bool [tokens, prompt]."""
    own: Tensor | None
    """Bool [rows or 1, tokens, tokens]."""


class Masks(NamedTuple):
    """One mask per attention kind."""

    sliding: Mask
    full: Mask


def rotary_tables(
    rope: RopeConfig, head_dim: int, positions: int, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """cos and sin of every position, each [positions, head_dim], in the model's dtype.

    `proportional` spreads the frequencies over the whole head and leaves the later ones zero;
    `default` with a partial factor is not part of this family and counts as whole.
    """
    pairs = head_dim // 2
    turning = int(rope.partial * head_dim // 2) if rope.kind == "proportional" else pairs
    exponents = torch.arange(0, 2 * turning, 2, dtype=torch.float32, device=device) / head_dim
    frequencies = torch.zeros(pairs, device=device)
    frequencies[:turning] = 1.0 / (rope.theta**exponents) / rope.factor
    angles = torch.arange(positions, dtype=torch.float32, device=device)[:, None] * frequencies
    angles = torch.cat((angles, angles), -1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def encoder_masks(window: int, past: int, tokens: int, device: torch.device) -> Masks:
    """Causal; on sliding layers a query sees the last `window` keys, itself included."""
    if tokens == 1 and past + 1 <= window:
        return Masks(Mask(None, None), Mask(None, None))
    query = torch.arange(past, past + tokens, device=device)[:, None]
    own = torch.arange(past, past + tokens, device=device)[None, :]
    causal = own <= query
    full = Mask(None, causal[None])
    if past + tokens <= window:
        return Masks(full, full)
    prompt = torch.arange(past, device=device)[None, :]
    return Masks(Mask(prompt > query - window, (causal & (own > query - window))[None]), full)


def decoder_masks(
    rule: MaskRule,
    window: int,
    past: int,
    canvas: int,
    lengths: Tensor | None,
    device: torch.device,
) -> Masks:
    """Two-sided over the canvas; sliding layers bound the prompt by `rule` (see MaskRule)."""
    used: Tensor | None = None
    if lengths is not None:
        used = (torch.arange(canvas, device=device) < lengths[:, None])[:, None, :]
        used = used.expand(-1, canvas, -1)
    full = Mask(None, used)
    query = torch.arange(past, past + canvas, device=device)[:, None]
    prompt = torch.arange(past, device=device)[None, :]
    if rule is MaskRule.ANCHORED:
        if past <= window - 1:
            return Masks(full, full)
        return Masks(Mask((prompt > past - window).expand(canvas, -1), used), full)
    if past + canvas <= window:
        return Masks(full, full)
    own = torch.arange(past, past + canvas, device=device)[None, :]
    near = ((own - query).abs() < window)[None]
    return Masks(Mask(prompt > query - window, near if used is None else near & used), full)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_key: Tensor | None,
    past_value: Tensor | None,
    mask: Mask,
) -> Tensor:
    """Attention with scale 1 over a prompt shared by all rows and each row's own tokens.

    Args:
        query: [rows, heads, tokens, dim].
        key, value: [rows, kv_heads, tokens, dim].
        past_key, past_value: [kv_heads, prompt, dim], the same for every row; or None.
        mask: see Mask.

    Returns:
        [rows, tokens, heads * dim]

    The prompt's keys are not copied per row: all rows' queries of one key head are one product.
    Softmax sums in float32 whatever its input, so half-precision scores need no wider copy.
    """
    rows, heads, tokens, dim = query.shape
    kv = key.shape[1]
    group = heads // kv
    grouped = query.reshape(rows, kv, group * tokens, dim)
    own_scores = (grouped @ key.transpose(-1, -2)).view(rows, kv, group, tokens, tokens)
    if mask.own is not None:
        own_scores = own_scores.masked_fill(~mask.own[:, None, None], float("-inf"))
    if past_key is None or past_value is None or past_key.shape[1] == 0:
        weights = torch.softmax(own_scores, -1)
        mixed = weights.view(rows, kv, group * tokens, tokens) @ value
    else:
        prompt = past_key.shape[1]
        flat = grouped.transpose(0, 1).reshape(kv, rows * group * tokens, dim)
        prompt_scores = torch.matmul(flat, past_key.transpose(-1, -2))
        prompt_scores = prompt_scores.view(kv, rows, group, tokens, prompt).transpose(0, 1)
        if mask.prompt is not None:
            prompt_scores = prompt_scores.masked_fill(~mask.prompt, float("-inf"))
        scores = torch.cat((prompt_scores, own_scores), -1)
        weights = torch.softmax(scores, -1)
        prompt_weights, own_weights = weights[..., :prompt], weights[..., prompt:]
        mixed = own_weights.reshape(rows, kv, group * tokens, tokens) @ value
        flat = prompt_weights.transpose(0, 1).reshape(kv, rows * group * tokens, prompt)
        from_prompt = torch.matmul(flat, past_value).view(kv, rows, group * tokens, dim)
        mixed = mixed + from_prompt.transpose(0, 1)
    mixed = mixed.view(rows, kv, group, tokens, dim)
    return mixed.permute(0, 3, 1, 2, 4).reshape(rows, tokens, heads * dim)
