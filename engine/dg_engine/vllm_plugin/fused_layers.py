"""Decoder layers of Gemma 4 that run in few launches where they fit, and as upstream has them else.

A layer has a block of ours behind its attention (dg_engine.vllm_plugin.feed_forward), or runs whole
(dg_engine.vllm_plugin.whole_layers).
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor
from vllm.model_executor.models import gemma4

from dg_engine.vllm_plugin.feed_forward import (
    NAME,
    WHOLE,
    FeedForward,
    Unfit,
    feed_forward_op,
    keep_block,
    side_stream,
)

LOG = logging.getLogger(__name__)


def fuse(model: torch.nn.Module, device: torch.device, whole: bool = False) -> int:
    """Give every decoder layer that fits its block; returns how many have one.

    With `whole`, what stands in front of the blocks comes in few launches too where it can:
    see dg_engine.vllm_plugin.whole_layers.
    """
    found: dict[str, Any] = {}
    blocks: dict[str, FeedForward] = {}
    for name, layer in model.named_modules():
        if not isinstance(layer, gemma4.Gemma4DecoderLayer):
            continue
        try:
            blocks[name] = keep_block(name, layer)
        except (Unfit, AttributeError) as error:
            LOG.info("Layer %s runs as vLLM has it: %s", name, error)
            continue
        setattr(layer, NAME, name)
        found[name] = layer
    if found:
        side_stream(device)
        if whole:
            from dg_engine.vllm_plugin.whole_layers import join

            join(found, blocks)
        _let_layers_choose()
    return len(found)


def _let_layers_choose() -> None:
    """Have decoder layers use their block where they have one; idempotent."""
    layer: Any = gemma4.Gemma4DecoderLayer
    upstream: Any = layer.forward
    if getattr(upstream, "canvases", False):
        return

    def forward(
        self: Any,
        positions: Tensor,
        hidden_states: Tensor,
        residual: Any,
        per_layer_input: Tensor | None = None,
        **further: Any,
    ) -> tuple[Tensor, Any]:
        name = getattr(self, NAME, None)
        if name is None or per_layer_input is not None:
            return upstream(
                self, positions, hidden_states, residual, per_layer_input=per_layer_input, **further
            )
        run = getattr(self, WHOLE, None)
        if run is not None:
            return run(positions, hidden_states, residual)
        attended = self.self_attn(
            positions=positions, hidden_states=self.input_layernorm(hidden_states), **further
        )
        return feed_forward_op(attended, hidden_states, name), None

    forward.canvases = True
    layer.forward = forward
