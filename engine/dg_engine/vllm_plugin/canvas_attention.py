"""Our attention as a vLLM backend: `attention_backend="CUSTOM"`, for every layer.

Where keys and values lie, and how they get there, is upstream's Triton backend; what reads them is
`dg_kernels.canvas_attention`, by either mask rule.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
from typing import Any, ClassVar

import torch
from dg_kernels import reference
from dg_kernels.canvas_attention import HEAD_DIMS, attend, canvas_attention
from dg_kernels.splits import Parts
from torch import Tensor
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend, TritonAttentionImpl

from dg_engine.job import MaskRule
from dg_engine.vllm_plugin.joining import LEADING
from dg_engine.vllm_plugin.register import MASK_RULE

PAGE = 32
"""Tokens of a page of layers that see everything; sliding ones, with twice the bytes a token, get
16 of vLLM. What of a prompt is not in the cache ends within two of them, so that larger ones would
have more of it read again for every job."""

_in_parts: dict[str, Parts | None] = {}
"""By the name of a layer whose reader joins splits: what its last forward left to be joined."""


def leave_in_parts(layer: str) -> None:
    """From now on, forwards of this layer may leave its splits to be joined by who reads them."""
    _in_parts[layer] = None


def take_parts(layer: str) -> Parts | None:
    """What the layer's last forward left to be joined, once; None where its output is whole."""
    parts = _in_parts.get(layer)
    if parts is not None:
        _in_parts[layer] = None
    return parts


class CanvasAttentionBackend(TritonAttentionBackend):
    """Takes the place of vLLM's `CUSTOM`; the metadata are upstream's."""

    supported_kv_cache_dtypes: ClassVar[list[str]] = ["auto", "float16", "bfloat16"]

    @staticmethod
    def get_name() -> str:
        """As the registry knows it."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[CanvasAttention]:
        """What computes."""
        return CanvasAttention

    @classmethod
    def get_preferred_block_size(cls, default_block_size: int) -> int:
        """A page holds whole tiles of keys, so that one lookup serves a tile."""
        return max(default_block_size, PAGE)

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        """Those of the kernel."""
        return head_size in HEAD_DIMS

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        """Layers that read pages."""
        return attn_type == AttentionType.DECODER

    @classmethod
    def supports_sink(cls) -> bool:
        """No."""
        return False


class CanvasAttention(TritonAttentionImpl):
    """Attention of one layer."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.alibi_slopes is not None or self.sinks is not None or self.logits_soft_cap:
            raise ValueError("The canvas attention knows no biases, sinks or caps of scores.")
        window = self.sliding_window[0]
        self._window = window + 1 if window >= 0 else None
        anchored = os.environ.get(MASK_RULE) == MaskRule.ANCHORED
        self._rule: reference.MaskRule = "anchored" if anchored else "symmetric"

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: Any,
        output: Tensor,
        *_: Any,
        **__: Any,
    ) -> Tensor:
        """query [tokens, heads, head] -> output of the same shape."""
        if attn_metadata is None:
            return output.fill_(0)
        if attn_metadata.mm_prefix_range is not None:
            raise ValueError("Images need another attention backend than CUSTOM.")
        tokens, causal = attn_metadata.num_actual_tokens, attn_metadata.causal
        lengths = attn_metadata.seq_lens
        if not isinstance(causal, Tensor):
            causal = torch.full_like(lengths, causal)
        key_pages, value_pages = kv_cache.transpose(1, 2).split(self.head_size, -1)
        batch = (
            query[:tokens], key_pages, value_pages, attn_metadata.block_table,
            attn_metadata.query_start_loc, lengths, causal,
        )  # fmt: skip
        mask: dict[str, Any] = {
            "scale": self.scale, "window": self._window, "rule": self._rule,
            "leading": getattr(attn_metadata, LEADING, None),
        }  # fmt: skip
        if getattr(layer, "layer_name", None) in _in_parts and tokens == len(output):
            _in_parts[layer.layer_name] = attend(*batch, output, **mask)
        else:
            canvas_attention(*batch, out=output[:tokens], **mask)
        return output
