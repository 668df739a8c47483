"""A DiffusionGemma folder of the published 26B-A4B sizes without weights, FP8 by layout.

vLLM fills it with `load_format="dummy"`. Text only; every field is written out, since some readers
do not apply the configuration's defaults.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LAYERS = 30


def text_config(layers: int = LAYERS) -> dict[str, Any]:
    """The published figures of the text half."""
    kinds = ["sliding_attention", "full_attention"]
    return {
        "model_type": "diffusion_gemma_text",
        "vocab_size": 262_144,
        "hidden_size": 2816,
        "intermediate_size": 2112,
        "num_hidden_layers": layers,
        "layer_types": [kinds[(i + 1) % 6 == 0] for i in range(layers)],
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
        "global_head_dim": 512,
        "num_global_key_value_heads": 2,
        "attention_k_eq_v": True,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "use_bidirectional_attention": None,
        "sliding_window": 1024,
        "max_position_embeddings": 262_144,
        "rms_norm_eps": 1e-6,
        "final_logit_softcapping": 30.0,
        "hidden_activation": "gelu_pytorch_tanh",
        "enable_moe_block": True,
        "num_experts": 128,
        "top_k_experts": 8,
        "moe_intermediate_size": 704,
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 262_144,
        "num_kv_shared_layers": 0,
        "use_double_wide_mlp": False,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
        "dtype": "bfloat16",
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
            "full_attention": {
                "rope_type": "proportional",
                "partial_rotary_factor": 0.25,
                "rope_theta": 1_000_000.0,
            },
        },
    }


FP8: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head", "re:.*embed_tokens.*", "re:.*router.*", "re:.*self_conditioning.*"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {
                "num_bits": 8,
                "type": "float",
                "strategy": "channel",
                "symmetric": True,
                "dynamic": False,
            },
            "input_activations": {
                "num_bits": 8,
                "type": "float",
                "strategy": "token",
                "symmetric": True,
                "dynamic": True,
            },
        }
    },
}
GENERATION: dict[str, Any] = {
    "max_new_tokens": 256,
    "max_denoising_steps": 48,
    "t_min": 0.4,
    "t_max": 0.8,
    "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1},
    "stability_threshold": 1,
    "confidence_threshold": 0.005,
    "eos_token_id": [1, 106, 50],
    "pad_token_id": 0,
    "bos_token_id": 2,
}


SMALL: dict[str, Any] = {
    "vocab_size": 8192,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "global_head_dim": 64,
    "num_global_key_value_heads": 1,
    "num_experts": 8,
    "moe_intermediate_size": 32,
}
"""Sizes for a rehearsal; all else stays."""


def write(folder: Path, *, layers: int = LAYERS, small: bool = False) -> Path:
    """Write config.json and generation_config.json; returns the folder.

    `small` keeps the shape and gives up size and FP8, so that a CPU runs it.
    """
    config: dict[str, Any] = {
        "architectures": ["DiffusionGemmaForBlockDiffusion"],
        "model_type": "diffusion_gemma",
        "text_config": text_config(layers),
        "vision_config": None,
        "canvas_length": 256,
        "dtype": "bfloat16",
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
        "boi_token_id": 255_999,
        "eoi_token_id": 258_882,
        "image_token_id": 258_880,
        "initializer_range": 0.02,
        "quantization_config": FP8,
    }
    if small:
        config["text_config"] |= SMALL
        del config["quantization_config"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "generation_config.json").write_text(json.dumps(GENERATION, indent=1))
    return folder
