"""The entry point `vllm.general_plugins`: runs in each of vLLM's processes, maybe several times."""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
from typing import Any

from dg_engine.job import MaskRule
from dg_engine.vllm_plugin.compat import installed_version, refusal
from dg_engine.vllm_plugin.gpu_defaults import OURS, fill_in, offer_tilings
from dg_engine.vllm_plugin.graphs import capture_lone_requests

ARCHITECTURE = "DiffusionGemmaForBlockDiffusion"
MODEL = "dg_engine.vllm_plugin.model:CanvasDiffusionGemma"
SCHEDULER = "dg_engine.vllm_plugin.scheduler.canvas_scheduler"
ATTENTION = "dg_engine.vllm_plugin.canvas_attention.CanvasAttentionBackend"
ANCHORED = "dg_engine.vllm_plugin.anchored.AnchoredBackend"
MASK_RULE = "DG_VLLM_MASK_RULE"
"""Environment variable that names the mask rule in all of vLLM's processes; see MaskRule."""


def register() -> None:
    """Put our model class in place of vLLM's and our scheduler behind it.

    Other models are left alone, and so is a vLLM that we are not made for until it is asked for
    this model.
    """
    from vllm.model_executor.models.config import MODELS_CONFIG_MAP
    from vllm.model_executor.models.registry import ModelRegistry

    upstream: Any = MODELS_CONFIG_MAP.get(ARCHITECTURE, object)
    if getattr(upstream, "canvases", False):
        return

    class CanvasConfig(upstream):
        """Upstream's settings of the model, then ours."""

        canvases = True

        @classmethod
        def verify_and_update_config(cls, vllm_config: Any) -> None:
            """Raise ValueError on a vLLM outside the range; otherwise set our scheduler."""
            refused = refusal(installed_version())
            if refused:
                raise ValueError(refused)
            anchored = os.environ.get(MASK_RULE) == MaskRule.ANCHORED
            backend = getattr(vllm_config.attention_config.backend, "name", None)
            if anchored and vllm_config.device_config.device_type != "cpu" and backend != OURS:
                raise ValueError(
                    f"The anchored mask rule needs our attention; set attention_backend to {OURS}."
                )
            super().verify_and_update_config(vllm_config)
            if vllm_config.scheduler_config.scheduler_cls is None:
                vllm_config.scheduler_config.scheduler_cls = SCHEDULER
            from vllm.platforms import current_platform

            if current_platform.is_cuda():
                from vllm.v1.attention.backends.registry import AttentionBackendEnum

                fill_in(vllm_config, AttentionBackendEnum[OURS])

    MODELS_CONFIG_MAP[ARCHITECTURE] = CanvasConfig
    if refusal(installed_version()) is None:
        ModelRegistry.register_model(ARCHITECTURE, MODEL)
        register_attention(OURS, ATTENTION)
        offer_tilings()
        capture_lone_requests()
    if os.environ.get(MASK_RULE) == MaskRule.ANCHORED:
        register_anchored()


def register_anchored() -> None:
    """Let our attention in plain PyTorch take the place of vLLM's on the CPU."""
    register_attention("CPU_ATTN", ANCHORED)


def register_attention(name: str, path: str) -> None:
    """Let the class at `path` be the attention backend that vLLM calls `name`."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(AttentionBackendEnum[name], path)
