"""Our attention as a vLLM backend: `attention_backend="CUSTOM"`, for every layer.

Where keys and values lie, and how they get there, is upstream's Triton backend; what reads them is
`dg_kernels.canvas_attention`, by either mask rule. Many queries on a layer that sees everything,
where no rule matters, are FlashAttention 4's where vLLM brings it: it shares its keys between more
of the chip than Triton can (bench/results/gpu.md).
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from dg_kernels import reference
from dg_kernels.canvas_attention import HEAD_DIMS, Parts, attend, canvas_attention
from torch import Tensor
from vllm.config import get_current_vllm_config
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend, TritonAttentionImpl

from dg_engine.job import MaskRule
from dg_engine.vllm_plugin.joining import LEADING, is_told_apart
from dg_engine.vllm_plugin.register import MASK_RULE

PAGE = 32
"""Tokens of a page of layers that see everything; sliding ones, with twice the bytes a token, get
16 of vLLM. What of a prompt is not in the cache ends within two of them, so that larger ones would
have more of it read again for every job."""


FLASH_DTYPES = (torch.bfloat16, torch.float16)

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
        self._flash = flash_attention() if self._window is None else None
        diffusion = get_current_vllm_config().diffusion_config
        self._canvas = diffusion.canvas_length if diffusion is not None else 0
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
        ours = is_told_apart(tokens, self._canvas) or query.dtype not in FLASH_DTYPES
        if self._flash and not ours:
            self._flash(
                query[:tokens], key_pages, value_pages, attn_metadata.block_table,
                attn_metadata.query_start_loc, lengths, causal, attn_metadata.max_seq_len,
                self.scale, output[:tokens],
            )  # fmt: skip
            return output
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


@functools.cache
def flash_attention() -> Callable[..., None] | None:
    """FlashAttention 4 over a layer that sees everything, where this vLLM and GPU have it.

    Arguments as those of dg_kernels.canvas_attention, then the greatest number of keys that a
    sequence may have, the factor of the scores and the output.
    """
    try:
        from vllm.vllm_flash_attn import flash_attn_interface as flash
    except ImportError:
        return None
    attend = flash.flash_attn_varlen_func
    by_sequence = "dynamic_causal" in inspect.signature(attend).parameters
    # It tells sequences apart on Hopper alone.
    hopper = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9
    if not by_sequence or not hopper or not flash.is_fa_version_supported(4):
        return None

    def attend_fully(
        query: Tensor, key_pages: Tensor, value_pages: Tensor, block_table: Tensor,
        query_starts: Tensor, key_counts: Tensor, causal: Tensor, most_keys: int, scale: float,
        out: Tensor,
    ) -> None:  # fmt: skip
        # A captured graph serves any share of its tokens in one sequence.
        attend(
            q=query, k=key_pages, v=value_pages, out=out, cu_seqlens_q=query_starts,
            max_seqlen_q=len(query), seqused_k=key_counts, max_seqlen_k=most_keys,
            softmax_scale=scale, causal=True, dynamic_causal=causal, window_size=None,
            block_table=block_table, num_splits=0, fa_version=4,
        )  # fmt: skip

    return attend_fully
