"""vLLM attention by the anchored mask rule, in plain PyTorch on the CPU: hook and reference.

On sliding layers every canvas row sees the last window - 1 prompt keys and the whole canvas, as in
transformers; vLLM's own backends bound each row by its distance (the symmetric rule). One request
at a time and in no hurry: tests hold a fast kernel to it.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend, CPUAttentionBackendImpl

from dg_engine.attention import attend, decoder_masks, encoder_masks
from dg_engine.job import MaskRule
from dg_engine.vllm_plugin.joining import LEADING


class AnchoredBackend(CPUAttentionBackend):
    """Takes the place of CPU_ATTN; the metadata are upstream's."""

    @staticmethod
    def get_impl_cls() -> type[AnchoredAttention]:
        """What computes."""
        return AnchoredAttention


class AnchoredAttention(CPUAttentionBackendImpl):
    """Keys and values lie in the cache as they are: [blocks, heads, block, 2 * head]."""

    def do_kv_cache_update(
        self, layer: Any, key: Tensor, value: Tensor, kv_cache: Tensor, slot_mapping: Tensor
    ) -> None:
        """Write the step's keys and values to their slots; -1 marks padding."""
        used = slot_mapping >= 0
        slots, size = slot_mapping[used], kv_cache.shape[2]
        both = torch.cat((key, value), -1)[: len(slot_mapping)][used]
        kv_cache[slots // size, :, slots % size] = both.to(kv_cache.dtype)

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
            return output
        starts = attn_metadata.query_start_loc.tolist()
        lengths = attn_metadata.seq_lens.tolist()
        for index, (begin, end) in enumerate(itertools.pairwise(starts)):
            if index >= len(lengths) or end <= begin:
                break
            causal = attn_metadata.causal
            if attn_metadata.dynamic_causal is not None:
                causal = bool(attn_metadata.dynamic_causal[index])
            leading = getattr(attn_metadata, LEADING, None)
            lead = 0 if causal or leading is None else int(leading[index])
            blocks, length = attn_metadata.block_table[index], lengths[index]
            # The end of a prompt, then the canvas behind it.
            for first, last, alike in ((begin, begin + lead, True), (begin + lead, end, causal)):
                if first < last:
                    keys = length - (end - last)
                    mixed = self._one(query[first:last], kv_cache, blocks, keys, alike)
                    output[first:last] = mixed.view_as(output[first:last])
        return output

    def _one(
        self, query: Tensor, kv_cache: Tensor, blocks: Tensor, length: int, causal: bool
    ) -> Tensor:
        """Attention of one request's last rows over its `length` keys: [rows, heads * head]."""
        rows, size = query.shape[0], kv_cache.shape[2]
        taken = kv_cache[blocks[: -(-length // size)].long()]
        both = taken.transpose(0, 1).flatten(1, 2)[:, :length].to(query.dtype)
        keys, values = both.chunk(2, -1)
        past = length - rows
        window = self.sliding_window if self.sliding_window > 0 else length + 1
        masks = (
            encoder_masks(window, past, rows, query.device)
            if causal
            else decoder_masks(MaskRule.ANCHORED, window, past, rows, None, query.device)
        )
        mixed = attend(
            (query * self.scale).transpose(0, 1)[None],
            keys[None, :, past:],
            values[None, :, past:],
            keys[:, :past],
            values[:, :past],
            masks.sliding,
        )
        return mixed[0]
