"""What stands between a decoder layer's blocks in few launches: from one layer's sums to the next
layer's products, and from a product to queries, and keys in their pages.

A layer that follows another gets its rows normed and in FP8 already (dg_kernels.feed_forward), one
launch makes queries, keys and values of one product (dg_kernels.rotate), and the attention is
vLLM's call of our backend, which reads nothing but pages. What it leaves in parts is joined where
it is brought to FP8 for the next product.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import logging
from typing import Any

import torch
from dg_kernels.feed_forward import quantise
from dg_kernels.rotate import rotate
from dg_kernels.splits import join_rows
from torch import Tensor
from vllm import _custom_ops as vllm_ops
from vllm.model_executor.layers.attention import attention as vllm_attention

from dg_engine.vllm_plugin.canvas_attention import leave_in_parts, take_parts
from dg_engine.vllm_plugin.feed_forward import WHOLE, FeedForward, Unfit, weights_of

LOG = logging.getLogger(__name__)
Rows = tuple[Tensor, Tensor]
"""FP8 [rows, hidden] and their scales [rows, 1]."""

_layers: dict[str, WholeLayer] = {}


class WholeLayer:
    """A decoder layer over the weights that vLLM has loaded."""

    def __init__(self, name: str, layer: Any, block: FeedForward, following: Any) -> None:
        """`following` is the next layer, if that is a whole one. Raises Unfit for another's."""
        attention, norm = layer.self_attn, layer.input_layernorm
        turns = attention.rotary_emb
        if attention.is_kv_shared_layer or attention.qkv_proj.bias is not None:
            raise Unfit("attention that shares its keys, or has biases")
        if not turns.is_neox_style or turns.rotary_dim != attention.head_dim:
            raise Unfit("heads that are turned in another way")
        linears = (attention.qkv_proj, attention.o_proj)
        if any(getattr(linear, "input_scale", None) is not None for linear in linears):
            raise Unfit("rows that are scaled by fixed factors")
        self._qkv, self._qkv_scales = weights_of(attention.qkv_proj)
        self._out, self._out_scales = weights_of(attention.o_proj)
        self._block, self._name = block, name
        self._norm, self._epsilon = norm.weight, norm.variance_epsilon
        self._query_norm, self._key_norm = attention.q_norm.weight, attention.k_norm.weight
        self._heads, self._head_dim = attention.num_heads, attention.head_dim
        self._turns = turns
        self._following = None if following is None else following.input_layernorm.weight
        self._layer_name = attention.attn.layer_name

    def run(self, positions: Tensor, hidden: Tensor, rows: Rows | None) -> tuple[Tensor, Any]:
        """The layer's forward, and what the next one reads instead of `hidden` where it follows.

        positions: integers [rows]. hidden: bfloat16 [rows, hidden]. rows: from the layer before.
        """
        multiplied, scales = begin_op(hidden, self._name) if rows is None else rows
        query = heads_op(multiplied, scales, positions, self._name, self._heads, self._head_dim)
        attended = _attend(query, self._layer_name)
        out, *following = rest_op(attended.flatten(1), hidden, self._name)
        return out, (following[0], following[1]) if self._following is not None else None

    def begin(self, hidden: Tensor) -> Rows:
        """What the first product reads of a layer's input [rows, hidden]."""
        return quantise(hidden, self._norm, self._epsilon)

    def heads(self, multiplied: Tensor, scales: Tensor, positions: Tensor) -> Tensor:
        """Queries [rows, heads, head_dim]; keys and values go into this layer's pages."""
        qkv = vllm_ops.cutlass_scaled_mm(
            multiplied, self._qkv, scales, self._qkv_scales, self._norm.dtype
        )
        _, _, cache, slots = vllm_attention.get_attention_context(self._layer_name)
        pages = None
        if slots is not None:
            keys, values = cache.transpose(1, 2).split(self._head_dim, -1)
            pages = (keys, values)
        return rotate(
            qkv, positions, self._turns.cos_sin_cache, self._query_norm, self._key_norm,
            self._epsilon, self._heads, pages, slots,
        )  # fmt: skip

    def rest(self, attended: Tensor, residual: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Output, and what the next layer's first product reads, or nothing."""
        parts = take_parts(self._layer_name)
        rows, scales = quantise(attended) if parts is None else join_rows(parts)
        projected = vllm_ops.cutlass_scaled_mm(
            rows, self._out, scales, self._out_scales, residual.dtype
        )
        if self._following is None:
            out = self._block(projected, residual)
            return out, rows.new_empty(0, out.shape[1]), scales.new_empty(0, 1)
        return self._block.for_next(projected, residual, self._following)


def _attend(query: Tensor, layer: str) -> Tensor:
    """Output of a layer's attention, as vLLM's compiler and graphs know it [rows, heads, head]."""
    attended = torch.empty_like(query)
    # Keys and values lie in their pages already.
    nothing = query.new_empty(0)
    torch.ops.vllm.unified_attention_with_output(
        query, nothing, nothing, attended, vllm_attention._encode_layer_name(layer)
    )
    return attended


@torch.library.custom_op("dg_lsp::begin_layer", mutates_args=())
def begin_op(hidden: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """WholeLayer.begin by name, as the compiler of a forward sees it."""
    return _layers[name].begin(hidden)


@begin_op.register_fake
def _(hidden: Tensor, name: str) -> tuple[Tensor, Tensor]:
    return _rows_like(hidden, hidden.shape[0])


@torch.library.custom_op("dg_lsp::heads_of_layer", mutates_args=())
def heads_op(
    multiplied: Tensor, scales: Tensor, positions: Tensor, name: str, heads: int, head_dim: int
) -> Tensor:
    """WholeLayer.heads by name; that it writes pages is vLLM's secret, as with its own."""
    return _layers[name].heads(multiplied, scales, positions)


@heads_op.register_fake
def _(
    multiplied: Tensor, scales: Tensor, positions: Tensor, name: str, heads: int, head_dim: int
) -> Tensor:
    return multiplied.new_empty(multiplied.shape[0], heads, head_dim, dtype=torch.bfloat16)


@torch.library.custom_op("dg_lsp::rest_of_layer", mutates_args=())
def rest_op(attended: Tensor, residual: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """WholeLayer.rest by name."""
    return _layers[name].rest(attended, residual)


@rest_op.register_fake
def _(attended: Tensor, residual: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor]:
    followed = _layers[name]._following is not None
    rows = _rows_like(residual, residual.shape[0] if followed else 0)
    return (torch.empty_like(residual), *rows)


def _rows_like(hidden: Tensor, count: int) -> Rows:
    return (
        hidden.new_empty(count, hidden.shape[1], dtype=torch.float8_e4m3fn),
        hidden.new_empty(count, 1, dtype=torch.float32),
    )


def join(layers: dict[str, Any], blocks: dict[str, FeedForward]) -> int:
    """Let layers, in their order, run whole where they can; returns how many do."""
    following, joined = None, 0
    for name, layer in reversed(layers.items()):
        try:
            _layers[name] = WholeLayer(name, layer, blocks[name], following)
        except (Unfit, AttributeError) as error:
            LOG.info("Layer %s is not joined to the next: %s", name, error)
            following = None
            continue
        setattr(layer, WHOLE, _layers[name].run)
        leave_in_parts(layer.self_attn.attn.layer_name)
        following, joined = layer, joined + 1
    return joined
