"""vLLM's DiffusionGemma with our state behind its hooks."""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import torch
from vllm.model_executor.models.diffusion_gemma import (
    DiffusionGemmaForConditionalGeneration,
    DiffusionGemmaProcessingInfo,
)
from vllm.model_executor.models.gemma4_mm import (
    Gemma4DummyInputsBuilder,
    Gemma4MultiModalProcessor,
)
from vllm.multimodal import MULTIMODAL_REGISTRY

from dg_engine.vllm_plugin.fp8_head import Fp8Head
from dg_engine.vllm_plugin.model_state import CanvasModelState

VISION = ("model.encoder.vision_tower.", "model.encoder.embed_vision.")
"""Weights of a tower that a checkpoint may have and this model may lack."""
SCALAR = re.compile(r"\.layers\.(\d+)\.layer_scalar$")


@MULTIMODAL_REGISTRY.register_processor(
    Gemma4MultiModalProcessor,
    info=DiffusionGemmaProcessingInfo,
    dummy_inputs=Gemma4DummyInputsBuilder,
)
class CanvasDiffusionGemma(DiffusionGemmaForConditionalGeneration):
    """The architecture `DiffusionGemmaForBlockDiffusion` as long as the plugin is installed."""

    @staticmethod
    def get_model_state_cls() -> type[CanvasModelState]:
        """What vLLM keeps the requests' state in."""
        return CanvasModelState

    fp8_head: Fp8Head | None = None
    """Takes the place of the last product where it is asked for."""

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """Logits [rows, vocab] without the softcap, which the sampler applies as it reads them."""
        if self.fp8_head is not None:
            return self.fp8_head(hidden_states)
        return self.logits_processor(self.lm_head, hidden_states)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load a checkpoint; raises ValueError for one that this forward would falsify."""
        if self.vision_tower is None:
            weights = (one for one in weights if not one[0].startswith(VISION))
        return super().load_weights(same_scalars(weights))


def same_scalars(
    weights: Iterable[tuple[str, torch.Tensor]],
) -> Iterator[tuple[str, torch.Tensor]]:
    """The weights as they come; ValueError once a layer's two scalars differ.

    A checkpoint stores `layer_scalar` for the encoder and for the decoder, and vLLM has one.
    """
    scalars: dict[str, torch.Tensor] = {}
    for name, tensor in weights:
        if match := SCALAR.search(name):
            other = scalars.setdefault(match[1], tensor)
            if not torch.equal(other.float().cpu(), tensor.float().cpu()):
                raise ValueError(
                    f"Layer {match[1]} has different scalars for encoder and decoder, which vLLM "
                    "cannot keep apart; run this checkpoint with the PyTorch engine."
                )
        yield name, tensor
