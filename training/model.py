"""The training form of dg-tiny: DiffusionGemma's layers over [clean | canvas] rows.

The mathematics is that of transformers' ``DiffusionGemmaForBlockDiffusion`` (tests hold the two
together); the layout is not. Query, key and value share one matrix, gate and up share one, and the
router is left out, because with one expert its weight is exactly 1. ``training.export`` writes the
published layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention

Mask = BlockMask | Tensor
"""A flex_attention block mask, or a boolean ``[query, key]`` tensor where flex has no backward."""


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the model; the defaults are dg-tiny."""

    vocab_size: int = 8192
    hidden_size: int = 512
    intermediate_size: int = 512
    expert_intermediate_size: int = 512
    query_heads: int = 8
    key_value_heads: int = 4
    head_size: int = 64
    layer_pattern: tuple[str, ...] = ("sliding", "sliding", "sliding", "full") * 2
    sliding_rope_theta: float = 10_000.0
    full_rope_theta: float = 1_000_000.0
    full_rotary_factor: float = 0.25
    logit_softcap: float = 30.0
    norm_epsilon: float = 1e-6
    sliding_window: int = 1024
    max_positions: int = 2048
    canvas_length: int = 256


class Piece(NamedTuple):
    """Rows ``start:stop`` of a fused parameter that are one matrix of the published layout."""

    parameter: str
    start: int
    stop: int


class Rotation(NamedTuple):
    """Cosines and sines of one layer kind, each ``[positions, head_size / 2]`` in fp32."""

    cosine: Tensor
    sine: Tensor


def rms_norm(values: Tensor, weight: Tensor | None, epsilon: float) -> Tensor:
    """Root-mean-square normalisation of the last axis, computed in fp32."""
    wide = values.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    if weight is not None:
        wide = wide * weight.float()
    return wide.type_as(values)


def inverse_frequencies(config: ModelConfig, kind: str) -> Tensor:
    """Rotary frequencies ``[head_size / 2]``; full layers rotate only the first share of them."""
    half = config.head_size // 2
    rotated = half if kind == "sliding" else int(config.full_rotary_factor * config.head_size // 2)
    theta = config.sliding_rope_theta if kind == "sliding" else config.full_rope_theta
    exponents = torch.arange(0, 2 * rotated, 2, dtype=torch.float32) / config.head_size
    return F.pad(1.0 / theta**exponents, (0, half - rotated))


def rotations(config: ModelConfig, positions: Tensor) -> dict[str, Rotation]:
    """One ``Rotation`` per layer kind for ``positions`` ``[length]``."""
    found = {}
    for kind in sorted(set(config.layer_pattern)):
        frequencies = inverse_frequencies(config, kind).to(positions.device)
        angles = positions.float()[:, None] * frequencies[None]
        found[kind] = Rotation(angles.cos(), angles.sin())
    return found


def rotate(heads: Tensor, rotation: Rotation) -> Tensor:
    """Rotate ``[batch, length, heads, head_size]``, pairing the two halves of a head."""
    first, second = heads.float().chunk(2, -1)
    cosine, sine = rotation.cosine[None, :, None], rotation.sine[None, :, None]
    turned = torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)
    return turned.type_as(heads)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Grouped attention over ``[batch, heads, length, head_size]``, unscaled as the model asks."""
    if isinstance(mask, BlockMask):
        attended = flex_attention(query, key, value, block_mask=mask, enable_gqa=True, scale=1.0)
        assert isinstance(attended, Tensor)
        return attended
    groups = query.size(1) // key.size(1)
    key, value = (part.repeat_interleave(groups, 1) for part in (key, value))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=1.0)


def gated(values: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """GELU-gated feed-forward with gate and up in one matrix ``[2 * inner, hidden]``."""
    gate, up = F.linear(values, gate_up).chunk(2, -1)
    return F.linear(F.gelu(gate, approximate="tanh") * up, down)


def matrix(rows: int, columns: int) -> nn.Parameter:
    """A weight whose product has the variance of its input."""
    return nn.Parameter(torch.randn(rows, columns) / math.sqrt(columns))


def scale(size: int, value: float = 1.0) -> nn.Parameter:
    """The weight of a normalisation."""
    return nn.Parameter(torch.full((size,), value))


class Layer(nn.Module):
    """One layer: attention, then a dense feed-forward and an expert side by side."""

    def __init__(self, config: ModelConfig, kind: str) -> None:
        super().__init__()
        hidden, head = config.hidden_size, config.head_size
        self.config, self.kind = config, kind
        self.query_size = config.query_heads * head
        self.key_size = config.key_value_heads * head
        shared = 1 if kind == "full" else 2  # full layers have no value matrix: values are the keys
        self.qkv = matrix(self.query_size + shared * self.key_size, hidden)
        self.output = matrix(hidden, self.query_size)
        self.mlp_gate_up = matrix(2 * config.intermediate_size, hidden)
        self.mlp_down = matrix(hidden, config.intermediate_size)
        self.expert_gate_up = matrix(2 * config.expert_intermediate_size, hidden)
        self.expert_down = matrix(hidden, config.expert_intermediate_size)
        # Attention is unscaled, so the two norms together start at the usual 1 / sqrt(head_size).
        self.q_norm = scale(head, head**-0.25)
        self.k_norm = scale(head, head**-0.25)
        self.input_layernorm = scale(hidden)
        self.post_attention_layernorm = scale(hidden, 0.5)
        self.pre_feedforward_layernorm = scale(hidden)
        self.post_feedforward_layernorm_1 = scale(hidden)
        self.pre_feedforward_layernorm_2 = scale(hidden)
        self.post_feedforward_layernorm_2 = scale(hidden)
        self.post_feedforward_layernorm = scale(hidden, 0.5)

    def pieces(self) -> Iterator[tuple[str, int, int]]:
        """Name and row range of every published matrix inside the fused parameters."""
        query, key = self.query_size, self.key_size
        borders = {
            "qkv": [0, query, *range(query + key, self.qkv.size(0) + 1, key)],
            "output": [0, self.output.size(0)],
            "mlp_gate_up": [0, self.mlp_gate_up.size(0) // 2, self.mlp_gate_up.size(0)],
            "mlp_down": [0, self.mlp_down.size(0)],
            "expert_gate_up": [0, self.expert_gate_up.size(0) // 2, self.expert_gate_up.size(0)],
            "expert_down": [0, self.expert_down.size(0)],
        }
        for name, rows in borders.items():
            yield from ((name, start, stop) for start, stop in pairwise(rows))


def layer_forward(layer: Layer, states: Tensor, rotation: Rotation, mask: Mask) -> Tensor:
    """``[batch, length, hidden]`` through one layer; a function so that one compiled graph serves
    all layers of a kind."""
    config, epsilon = layer.config, layer.config.norm_epsilon
    batch, length, _ = states.shape
    projected = F.linear(rms_norm(states, layer.input_layernorm, epsilon), layer.qkv)
    query = projected[..., : layer.query_size].unflatten(-1, (config.query_heads, -1))
    rest = projected[..., layer.query_size :].unflatten(-1, (-1, config.head_size))
    key = rest[:, :, : config.key_value_heads]
    value = rest[:, :, -config.key_value_heads :]  # on full layers the keys before their norm
    query = rotate(rms_norm(query, layer.q_norm, epsilon), rotation).transpose(1, 2)
    key = rotate(rms_norm(key, layer.k_norm, epsilon), rotation).transpose(1, 2)
    value = rms_norm(value, None, epsilon).transpose(1, 2)
    attended = attend(query, key, value, mask).transpose(1, 2).reshape(batch, length, -1)
    attended = F.linear(attended, layer.output)
    states = states + rms_norm(attended, layer.post_attention_layernorm, epsilon)
    dense = rms_norm(states, layer.pre_feedforward_layernorm, epsilon)
    dense = gated(dense, layer.mlp_gate_up, layer.mlp_down)
    expert = rms_norm(states, layer.pre_feedforward_layernorm_2, epsilon)
    expert = gated(expert, layer.expert_gate_up, layer.expert_down)
    mixed = rms_norm(dense, layer.post_feedforward_layernorm_1, epsilon)
    mixed = mixed + rms_norm(expert, layer.post_feedforward_layernorm_2, epsilon)
    return states + rms_norm(mixed, layer.post_feedforward_layernorm, epsilon)


def softcapped_logits(
    states: Tensor, norm: Tensor, embedding: Tensor, config: ModelConfig
) -> Tensor:
    """fp32 logits ``[..., vocab]`` of last-layer states ``[..., hidden]``."""
    raw = F.linear(rms_norm(states, norm, config.norm_epsilon), embedding).float()
    return config.logit_softcap * torch.tanh(raw / config.logit_softcap)


def token_losses(
    states: Tensor, norm: Tensor, embedding: Tensor, target: Tensor, config: ModelConfig
) -> Tensor:
    """Cross-entropy of every position, shaped as ``target``."""
    logits = softcapped_logits(states, norm, embedding, config)
    flat = F.cross_entropy(logits.flatten(0, -2), target.flatten(), reduction="none")
    return flat.view(target.shape)


def soft_embeddings(states: Tensor, norm: Tensor, embedding: Tensor, config: ModelConfig) -> Tensor:
    """The expected token embedding of a draft, ``[..., hidden]``: the self-conditioning signal."""
    probabilities = softcapped_logits(states, norm, embedding, config).softmax(-1)
    return (probabilities.type_as(embedding) @ embedding) * math.sqrt(config.hidden_size)


class SelfConditioning(nn.Module):
    """Adds what the last denoise step believed to the canvas embeddings."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.config = config
        self.gate_up = matrix(2 * inner, hidden)
        self.down = matrix(hidden, inner)
        self.pre_norm = scale(hidden)

    def pieces(self) -> Iterator[tuple[str, int, int]]:
        """Name and row range of every published matrix inside the fused parameters."""
        rows = self.gate_up.size(0)
        yield from (("gate_up", 0, rows // 2), ("gate_up", rows // 2, rows))
        yield ("down", 0, self.down.size(0))


def condition(module: SelfConditioning, embedded: Tensor, soft: Tensor) -> Tensor:
    """Canvas inputs ``[batch, length, hidden]`` from token and soft embeddings of that shape."""
    epsilon = module.config.norm_epsilon
    signal = gated(rms_norm(soft, module.pre_norm, epsilon), module.gate_up, module.down)
    return rms_norm(embedded + signal, None, epsilon)


class DiffusionModel(nn.Module):
    """dg-tiny; the same weights read clean tokens causally and refine canvases with two-sided
    attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = matrix(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, kind) for kind in config.layer_pattern)
        self.final_norm = scale(config.hidden_size)
        self.self_conditioning = SelfConditioning(config)
        self._layer: Callable[..., Tensor] = layer_forward
        self._losses: Callable[..., Tensor] = token_losses
        self._soft: Callable[..., Tensor] = soft_embeddings
        self._condition: Callable[..., Tensor] = condition

    def compile_regions(self, backend: str = "inductor") -> None:
        """Compile layer, loss and self-conditioning once each: far quicker than the whole model."""
        torch._dynamo.config.cache_size_limit = 64
        for name in ("_layer", "_losses", "_soft", "_condition"):
            setattr(self, name, torch.compile(getattr(self, name), dynamic=False, backend=backend))

    def pieces(self) -> list[Piece]:
        """All hidden matrices, for an optimiser that treats each published matrix by itself."""
        found = []
        for prefix, module in self.named_modules():
            if isinstance(module, Layer | SelfConditioning):
                found += [Piece(f"{prefix}.{name}", *rows) for name, *rows in module.pieces()]
        return found

    def embed(self, tokens: Tensor) -> Tensor:
        """Scaled embeddings ``[batch, length, hidden]`` of token ids ``[batch, length]``."""
        return F.embedding(tokens, self.embedding) * math.sqrt(self.config.hidden_size)

    def forward(
        self,
        clean: Tensor,
        canvas: Tensor,
        soft: Tensor,
        rotation: dict[str, Rotation],
        mask: Mask,
    ) -> Tensor:
        """States before the final norm, ``[batch, clean + canvas, hidden]``.

        ``clean`` and ``canvas`` are ids ``[batch, length]``, ``soft`` is
        ``[batch, canvas, hidden]`` and zero where there was no earlier step.
        """
        states = self.embed(torch.cat((clean, canvas), 1))
        if canvas.size(1):
            read, refined = states[:, : clean.size(1)], states[:, clean.size(1) :]
            states = torch.cat((read, self._condition(self.self_conditioning, refined, soft)), 1)
        for layer in self.layers:
            states = self._layer(layer, states, rotation[layer.kind], mask)
        return states

    def losses(self, states: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy ``[batch, length]`` of ``states`` ``[batch, length, hidden]``."""
        return self._losses(states, self.final_norm, self.embedding, target, self.config)

    @torch.no_grad()
    def soften(self, states: Tensor) -> Tensor:
        """Self-conditioning signal ``[batch, length, hidden]`` of a first denoise step."""
        return self._soft(states, self.final_norm, self.embedding, self.config)

    def logits(self, states: Tensor) -> Tensor:
        """Softcapped fp32 logits ``[batch, length, vocab]``."""
        return softcapped_logits(states, self.final_norm, self.embedding, self.config)


def parameter_count(model: nn.Module) -> int:
    """Number of trained values."""
    return sum(parameter.numel() for parameter in model.parameters())
