"""A compact forward of text-only DiffusionGemma, held to transformers by tests.

What it saves over the reference: weights of norms folded into the linear layers behind them,
one product for query, key and value, one for all gates, keys and values of the prompt shared by
every row of a batch, no module dispatch. It keeps whole keys and values on sliding layers, so
that any prefix of a cached prompt can be used again.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dg_engine.attention import Masks, attend, decoder_masks, encoder_masks, rotary_tables
from dg_engine.checkpoint import Weights
from dg_engine.engine import EngineError
from dg_engine.job import MaskRule
from dg_engine.lists import ints
from dg_engine.model import KeyValues
from dg_engine.model_config import LayerConfig, ModelConfig, RopeConfig


class PromptCache(NamedTuple):
    """Keys and values per layer, each [key_value_heads, tokens, head_dim]."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    @property
    def length(self) -> int:
        """Tokens encoded."""
        return self.keys[0].shape[1]

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(t.shape.numel() * t.element_size() for t in (*self.keys, *self.values))

    def crop(self, length: int) -> PromptCache:
        """The first `length` tokens; shares memory."""
        return PromptCache(
            tuple(k[:, :length] for k in self.keys), tuple(v[:, :length] for v in self.values)
        )


class Experts(NamedTuple):
    """A routed feed-forward with several experts; norms are folded in."""

    router: Tensor
    """[experts, hidden], the scales folded in."""
    scale: Tensor
    """[experts]"""
    gate_up: Tensor
    """[experts, 2 * expert_size, hidden]"""
    down: Tensor
    """[experts, hidden, expert_size]"""


class Layer(NamedTuple):
    """Folded weights of one layer."""

    config: LayerConfig
    qkv: Tensor
    """[(heads + 2 * key_value_heads) * head_dim, hidden]; without values on full layers."""
    head_norm: Tensor
    """[heads + key_value_heads, head_dim]"""
    out: Tensor
    after_attention: Tensor
    gate_up: Tensor
    """[2 * (intermediate + expert), hidden]: all gates, then all ups; the expert only if single."""
    down: Tensor
    after_dense: Tensor
    single_down: Tensor | None
    """Down product of a single expert, which needs no routing."""
    experts: Experts | None
    after_experts: Tensor
    after_feedforward: Tensor
    decoder_scale: float
    encoder_scale: float


class Conditioning(NamedTuple):
    """The gated MLP that mixes the last step's soft embeddings into a canvas."""

    gate_up: Tensor
    down: Tensor


class CompactModel:
    """DenoiserModel for text-only checkpoints; see dg_engine.model for the methods."""

    reuses_prefixes = True

    def __init__(
        self,
        folder: Path,
        config: ModelConfig,
        *,
        device: torch.device,
        dtype: torch.dtype,
        mask_rule: MaskRule = MaskRule.ANCHORED,
    ) -> None:
        if not config.compact:
            raise EngineError(
                f"{folder} needs the transformers package; install dg-lsp[reference]."
            )
        self.config = config
        self.device = device
        self.dtype = dtype
        self.mask_rule = mask_rule
        weights = Weights(folder, dtype=dtype, device=device)
        root = "model.decoder."
        hidden = config.hidden_size
        self._embedding = weights.place(
            weights.take(f"{root}embed_tokens.weight", (config.vocab_size, hidden))
        )
        norm = weights.take(f"{root}norm.weight", (hidden,))
        head = weights.take(f"{root}embed_tokens.weight", (config.vocab_size, hidden))
        self._head = weights.place(head * norm)
        self._conditioning = _take_conditioning(weights, config, f"{root}self_conditioning.")
        self._layers = tuple(
            _take_layer(weights, config, index) for index in range(len(config.layers))
        )
        # The reference rounds the factor to the weights' dtype before it multiplies.
        self._embed_scale = float(torch.tensor(math.sqrt(hidden)).to(dtype))
        self._tables = {
            sliding: rotary_tables(rope, head_dim, config.max_positions, device, dtype)
            for sliding, rope, head_dim in _rope_kinds(config)
        }

    @property
    def parameters(self) -> int:
        """See ModelConfig.parameters."""
        return self.config.parameters

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embedding [..., hidden]."""
        return F.embedding(ids, self._embedding) * self._embed_scale

    def encode(self, ids: Tensor, past: KeyValues | None) -> tuple[Tensor, PromptCache]:
        """See DenoiserModel.encode."""
        cache = _own(past)
        hidden, keys, values = self._run_encoder(ids[None], cache)
        if cache is not None:
            keys = [torch.cat((k, new[0]), 1) for k, new in zip(cache.keys, keys, strict=True)]
            values = [
                torch.cat((v, new[0]), 1) for v, new in zip(cache.values, values, strict=True)
            ]
        else:
            # Views would hold what they were cut out of, the queries as well.
            keys = [new[0].clone() for new in keys]
            values = [new[0].clone() for new in values]
        return hidden[0], PromptCache(tuple(keys), tuple(values))

    def encode_rows(self, ids: Tensor, past: KeyValues) -> Tensor:
        """See DenoiserModel.encode_rows."""
        return self._run_encoder(ids, _own(past))[0]

    def decode(
        self, ids: Tensor, conditioning: Tensor | None, past: KeyValues, lengths: Tensor | None
    ) -> Tensor:
        """See DenoiserModel.decode."""
        cache = _own(past)
        embedded = self.embed(ids)
        if conditioning is not None:
            embedded = embedded + self._condition(conditioning)
        hidden = F.rms_norm(embedded, (embedded.shape[-1],), None, self.config.norm_epsilon)
        masks = decoder_masks(
            self.mask_rule, self.config.sliding_window, cache.length if cache else 0,
            ids.shape[1], lengths, self.device,
        )  # fmt: skip
        return self._run_layers(hidden, cache, masks, decoder=True)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """Softcapped logits in float32."""
        normed = F.rms_norm(hidden, (hidden.shape[-1],), None, self.config.norm_epsilon)
        cap = self.config.softcap
        return torch.tanh(F.linear(normed, self._head).float() / cap) * cap

    def soft_embedding(self, processed: Tensor) -> Tensor:
        """Full sum over the vocabulary, in the model's dtype as the reference does it."""
        probabilities = torch.softmax(processed, -1, dtype=torch.float32).to(self.dtype)
        return (probabilities @ self._embedding) * self._embed_scale

    def _condition(self, soft: Tensor) -> Tensor:
        normed = F.rms_norm(soft, (soft.shape[-1],), None, self.config.norm_epsilon)
        gate, up = F.linear(normed, self._conditioning.gate_up).chunk(2, -1)
        return F.linear(F.gelu(gate, approximate="tanh") * up, self._conditioning.down)

    def _run_encoder(
        self, ids: Tensor, cache: PromptCache | None
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        masks = encoder_masks(
            self.config.sliding_window, cache.length if cache else 0, ids.shape[1], self.device
        )
        return self._run_layers(self.embed(ids), cache, masks, decoder=False)

    def _run_layers(
        self, hidden: Tensor, cache: PromptCache | None, masks: Masks, *, decoder: bool
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """hidden [rows, tokens, hidden] -> the same behind all layers, new keys and values."""
        start = cache.length if cache else 0
        tokens = hidden.shape[1]
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for index, layer in enumerate(self._layers):
            cos, sin = self._tables[layer.config.sliding]
            query, key, value = self._heads(
                hidden, layer, cos[start : start + tokens], sin[start : start + tokens]
            )
            mask = masks.sliding if layer.config.sliding else masks.full
            past_key = cache.keys[index] if cache else None
            past_value = cache.values[index] if cache else None
            mixed = attend(query, key, value, past_key, past_value, mask)
            hidden = hidden + self._norm(F.linear(mixed, layer.out), layer.after_attention)
            hidden = hidden + self._feedforward(hidden, layer)
            scale = layer.decoder_scale if decoder else layer.encoder_scale
            if scale != 1.0:
                hidden = hidden * scale
            keys.append(key)
            values.append(value)
        return hidden, keys, values

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self.config.norm_epsilon)

    def _heads(
        self, hidden: Tensor, layer: Layer, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Query [rows, heads, tokens, dim], key and value [rows, kv_heads, tokens, dim]."""
        rows, tokens, _ = hidden.shape
        epsilon = self.config.norm_epsilon
        dim = layer.config.head_dim
        kv = layer.config.key_value_heads
        heads = self.config.heads
        normed = F.rms_norm(hidden, (hidden.shape[-1],), None, epsilon)
        projected = F.linear(normed, layer.qkv).view(rows, tokens, -1, dim)
        unit = F.rms_norm(projected, (dim,), None, epsilon)
        turned = unit[:, :, : heads + kv] * layer.head_norm
        half = dim // 2
        rotated = torch.cat((-turned[..., half:], turned[..., :half]), -1)
        turned = turned * cos[:, None] + rotated * sin[:, None]
        # Full layers have no value product: the value is the key before its norm's weight.
        value = unit[:, :, heads + kv :] if layer.config.sliding else unit[:, :, heads:]
        return (
            turned[:, :, :heads].transpose(1, 2),
            turned[:, :, heads:].transpose(1, 2),
            value.transpose(1, 2),
        )

    def _feedforward(self, hidden: Tensor, layer: Layer) -> Tensor:
        unit = F.rms_norm(hidden, (hidden.shape[-1],), None, self.config.norm_epsilon)
        gate, up = F.linear(unit, layer.gate_up).chunk(2, -1)
        inner = F.gelu(gate, approximate="tanh") * up
        size = self.config.intermediate_size
        dense = self._norm(F.linear(inner[..., :size], layer.down), layer.after_dense)
        if layer.single_down is not None:
            routed = F.linear(inner[..., size:], layer.single_down)
        elif layer.experts is not None:
            routed = self._route(unit, layer.experts)
        else:
            raise AssertionError("a layer has either one expert or several")
        return self._norm(dense + self._norm(routed, layer.after_experts), layer.after_feedforward)

    def _route(self, unit: Tensor, experts: Experts) -> Tensor:
        """Top-k experts per token, one product per expert that is hit."""
        flat = unit.reshape(-1, unit.shape[-1])
        probabilities = torch.softmax(F.linear(flat, experts.router), -1, dtype=torch.float32)
        weight, chosen = probabilities.topk(self.config.active_experts, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        weight = (weight * experts.scale[chosen]).to(self.dtype)
        result = torch.zeros_like(flat)
        token, slot = torch.where(chosen >= 0)
        expert = chosen[token, slot]
        for index in sorted(set(ints(expert))):
            hit = expert == index
            at = token[hit]
            gate, up = F.linear(flat[at], experts.gate_up[index]).chunk(2, -1)
            out = F.linear(F.gelu(gate, approximate="tanh") * up, experts.down[index])
            result.index_add_(0, at, out * weight[at, slot[hit]][:, None])
        return result.view_as(unit)


def _own(past: KeyValues | None) -> PromptCache | None:
    if past is not None and not isinstance(past, PromptCache):
        raise TypeError("keys and values of another model")
    return past


def _rope_kinds(config: ModelConfig) -> list[tuple[bool, RopeConfig, int]]:
    kinds: dict[bool, tuple[bool, RopeConfig, int]] = {}
    for layer in config.layers:
        rope = config.sliding_rope if layer.sliding else config.full_rope
        kinds[layer.sliding] = (layer.sliding, rope, layer.head_dim)
    return list(kinds.values())


def _take_conditioning(weights: Weights, config: ModelConfig, root: str) -> Conditioning:
    hidden, size = config.hidden_size, config.intermediate_size
    norm = weights.take(f"{root}pre_norm.weight", (hidden,))
    gate = weights.take(f"{root}gate_proj.weight", (size, hidden))
    up = weights.take(f"{root}up_proj.weight", (size, hidden))
    down = weights.take(f"{root}down_proj.weight", (hidden, size))
    return Conditioning(weights.place(torch.cat((gate, up)) * norm), weights.place(down))


def _take_layer(weights: Weights, config: ModelConfig, index: int) -> Layer:
    """Read one layer and fold its norms into the products behind them."""
    layer = config.layers[index]
    root = f"model.decoder.layers.{index}."
    encoder_root = f"model.encoder.language_model.layers.{index}."
    hidden, dim, kv, heads = (
        config.hidden_size, layer.head_dim, layer.key_value_heads, config.heads,
    )  # fmt: skip
    size, expert_size, count = config.intermediate_size, config.expert_size, config.experts

    def norm(name: str, width: int = hidden) -> Tensor:
        return weights.take(f"{root}{name}.weight", (width,))

    products = [
        weights.take(f"{root}self_attn.q_proj.weight", (heads * dim, hidden)),
        weights.take(f"{root}self_attn.k_proj.weight", (kv * dim, hidden)),
    ]
    if layer.sliding:
        products.append(weights.take(f"{root}self_attn.v_proj.weight", (kv * dim, hidden)))
    head_norm = torch.cat(
        (
            norm("self_attn.q_norm", dim).expand(heads, dim),
            norm("self_attn.k_norm", dim).expand(kv, dim),
        )
    )
    before_dense = norm("pre_feedforward_layernorm")
    before_experts = norm("pre_feedforward_layernorm_2")
    gate = weights.take(f"{root}mlp.gate_proj.weight", (size, hidden)) * before_dense
    up = weights.take(f"{root}mlp.up_proj.weight", (size, hidden)) * before_dense
    expert_gate_up = weights.take(
        f"{root}experts.gate_up_proj", (count, 2 * expert_size, hidden)
    ) * before_experts  # fmt: skip
    expert_down = weights.take(f"{root}experts.down_proj", (count, hidden, expert_size))
    expert_scale = weights.take(f"{root}router.per_expert_scale", (count,))
    single_down: Tensor | None = None
    experts: Experts | None = None
    if count == 1:
        expert_gate, expert_up = expert_gate_up[0].chunk(2, 0)
        gate_up = torch.cat((gate, expert_gate, up, expert_up))
        single_down = weights.place(expert_down[0] * expert_scale[0])
    else:
        gate_up = torch.cat((gate, up))
        router = weights.take(f"{root}router.proj.weight", (count, hidden))
        router_scale = weights.take(f"{root}router.scale", (hidden,)) * hidden**-0.5
        experts = Experts(
            weights.place(router * router_scale),
            expert_scale.to(weights.place(expert_scale).device),
            weights.place(expert_gate_up),
            weights.place(expert_down),
        )
    return Layer(
        config=layer,
        qkv=weights.place(torch.cat(products) * norm("input_layernorm")),
        head_norm=weights.place(head_norm),
        out=weights.place(weights.take(f"{root}self_attn.o_proj.weight", (hidden, heads * dim))),
        after_attention=weights.place(norm("post_attention_layernorm")),
        gate_up=weights.place(gate_up),
        down=weights.place(weights.take(f"{root}mlp.down_proj.weight", (hidden, size))),
        after_dense=weights.place(norm("post_feedforward_layernorm_1")),
        single_down=single_down,
        experts=experts,
        after_experts=weights.place(norm("post_feedforward_layernorm_2")),
        after_feedforward=weights.place(norm("post_feedforward_layernorm")),
        decoder_scale=float(weights.take(f"{root}layer_scalar", (1,))),
        encoder_scale=float(weights.take(f"{encoder_root}layer_scalar", (1,))),
    )
