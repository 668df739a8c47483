"""What a GPU runs canvases best with, wherever the user left the choice to vLLM.

Measured on an H200, see bench/results/gpu.md: our attention on every layer, Triton's experts with
tilings of our own, and graphs over whole forwards for batches of any width up to eight canvases.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dg_engine.vllm_plugin.compat import installed_version, knows_layers
from dg_engine.vllm_plugin.joining import BESIDE_CANVAS
from dg_engine.vllm_plugin.options import FUSED_LAYERS

TILINGS = Path(__file__).parent / "moe_tilings"
"""Files that vLLM reads for its Triton experts, by size, GPU and dtype; see bench/gpu/moe.py."""
HEAD_DIMS = {64, 128, 256, 512}
"""Of dg_kernels.canvas_attention, which needs Triton to be looked at."""
GLOBAL = "global_head_dim"
TUNED_FOLDER = "VLLM_TUNED_CONFIG_FOLDER"
CANVASES_CAPTURED = 8
"""Whole canvases in the largest captured batch."""
SMALLER = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 96, 128, 160, 192)
"""Tokens of captured batches below a canvas: lines with the end of their prompt, candidates."""


TRITON = "triton"
OURS = "CUSTOM"
"""vLLM's name of an attention backend that a plugin brings."""
FUSED_SINCE = (9, 0)
"""Compute capability, of Hopper."""


def fuses_layers(vllm_config: Any) -> bool:
    """Whether FP8 layers may run by our blocks: on one GPU of a kind that they were tried on, in a
    vLLM whose layers they know, with experts as Triton wants them; other backends reorder weights.
    """
    from vllm.platforms import current_platform

    parallel = vllm_config.parallel_config
    return (
        vllm_config.additional_config.get(FUSED_LAYERS, True)
        and current_platform.is_cuda()
        and current_platform.has_device_capability(FUSED_SINCE)
        and vllm_config.kernel_config.moe_backend == TRITON
        and parallel.world_size == 1
        and not parallel.enable_expert_parallel
        and vllm_config.lora_config is None
        and knows_layers(installed_version())
    )


def joins_layers(vllm_config: Any) -> bool:
    """Whether layers that are fused may run whole: where our attention, which reads pages alone,
    is between their launches, and no graph holds a part of a forward without it.
    """
    mode = vllm_config.compilation_config.cudagraph_mode
    return (
        fuses_layers(vllm_config)
        and getattr(vllm_config.attention_config.backend, "name", None) == OURS
        and getattr(mode, "name", None) in ("FULL", "NONE")
        and vllm_config.kv_transfer_config is None
    )


def offer_tilings() -> None:
    """Let vLLM find our tilings of experts, unless the user has a folder of their own."""
    os.environ.setdefault(TUNED_FOLDER, str(TILINGS))


def capture_sizes(canvas: int, requests: int) -> list[int]:
    """Tokens of the batches that graphs are captured for, for canvases of `canvas` tokens."""
    most = canvas * min(requests, CANVASES_CAPTURED)
    steps = {canvas * n // 4 for n in range(4, 4 * CANVASES_CAPTURED + 1) if n <= 8 or n % 2 == 0}
    sizes = {size for size in {*SMALLER, *steps} if size <= most}
    # A canvas with the end of its prompt; a narrow one finds room in what is there.
    joined = {canvas + BESIDE_CANVAS // 2, canvas + BESIDE_CANVAS} if canvas >= SMALLER[-1] else {}
    return sorted({*sizes, *joined})


def fill_in(vllm_config: Any, ours: Any) -> None:
    """Set what is not set; `ours` is the attention backend. For a GPU of NVIDIA alone."""
    attention, text = vllm_config.attention_config, vllm_config.model_config.hf_text_config
    heads = {getattr(text, name, None) or text.head_dim for name in ("head_dim", GLOBAL)}
    as_is = vllm_config.cache_config.cache_dtype == "auto"
    if attention.backend is None and as_is and heads <= HEAD_DIMS:
        attention.backend = ours
    kernels = vllm_config.kernel_config
    quantised = getattr(vllm_config.model_config.hf_config, "quantization_config", None) or {}
    if kernels.moe_backend == "auto" and quantised.get("format") == "float-quantized":
        kernels.moe_backend = TRITON
    graphs = vllm_config.compilation_config
    if attention.backend == ours and graphs.cudagraph_mode is None:
        from vllm.config.compilation import CUDAGraphMode

        # Upstream captures whole canvases alone, so a narrower one is launched layer by layer.
        graphs.cudagraph_mode = CUDAGraphMode.FULL
        if graphs.cudagraph_capture_sizes is None and vllm_config.diffusion_config is not None:
            scheduler = vllm_config.scheduler_config
            sizes = capture_sizes(
                vllm_config.diffusion_config.canvas_length, scheduler.max_num_seqs
            )
            sizes = [size for size in sizes if size <= scheduler.max_num_batched_tokens]
            graphs.cudagraph_capture_sizes = sizes
            graphs.max_cudagraph_capture_size = sizes[-1]
