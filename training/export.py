"""Writes trained weights as a checkpoint folder in the published DiffusionGemma layout.

python -m training.export .train/run/weights-012345 models/dg-tiny --tokenizer .train

Matrices are stored as float8_e4m3fn without scales: a reader that casts weights to its own dtype
while it loads them, as transformers does, needs nothing else. Training ends with exactly these
values, so nothing is lost. Encoder weights are the decoder's and are stored once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModel, Gemma4VisionConfig

from training.model import ModelConfig
from training.optim import to_fp8
from training.tokenizer import BOS, EOS, PAD, SPECIAL_TOKENS

DECODER = "model.decoder"
ENCODER = "model.encoder"
SHARD_BYTES = 12 * 2**20
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
LAYER_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm_1",
    "pre_feedforward_layernorm_2",
    "post_feedforward_layernorm_2",
    "post_feedforward_layernorm",
)
Weights = dict[str, Tensor]


def vision_config() -> dict[str, Any]:
    """The smallest vision tower that transformers builds; it refuses a model without one."""
    return {
        "model_type": "gemma4_vision",
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "hidden_activation": "gelu_pytorch_tanh",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 64,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0},
        "pooling_kernel_size": 3,
        "patch_size": 16,
        "position_embedding_size": 64,
        "use_clipped_linears": False,
        "standardize": False,
        "initializer_range": 0.02,
    }


def text_config(config: ModelConfig) -> dict[str, Any]:
    """All fields written out: some readers of this file do not apply its defaults."""
    return {
        "model_type": "diffusion_gemma_text",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": len(config.layer_pattern),
        "layer_types": [f"{kind}_attention" for kind in config.layer_pattern],
        "num_attention_heads": config.query_heads,
        "num_key_value_heads": config.key_value_heads,
        "head_dim": config.head_size,
        "global_head_dim": config.head_size,
        "num_global_key_value_heads": config.key_value_heads,
        "attention_k_eq_v": True,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "use_bidirectional_attention": None,
        "sliding_window": config.sliding_window,
        "max_position_embeddings": config.max_positions,
        "rms_norm_eps": config.norm_epsilon,
        "final_logit_softcapping": config.logit_softcap,
        "hidden_activation": "gelu_pytorch_tanh",
        "enable_moe_block": True,
        "num_experts": 1,
        "top_k_experts": 1,
        "moe_intermediate_size": config.expert_intermediate_size,
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": config.vocab_size,
        "num_kv_shared_layers": 0,
        "use_double_wide_mlp": False,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "bos_token_id": BOS,
        "dtype": "bfloat16",
        "rope_parameters": {
            "sliding_attention": {
                "rope_type": "default",
                "rope_theta": config.sliding_rope_theta,
            },
            "full_attention": {
                "rope_type": "proportional",
                "partial_rotary_factor": config.full_rotary_factor,
                "rope_theta": config.full_rope_theta,
            },
        },
    }


def model_config(config: ModelConfig) -> dict[str, Any]:
    """The contents of config.json."""
    unused = len(SPECIAL_TOKENS)  # image markers take reserved ids, which never occur in text
    return {
        "architectures": ["DiffusionGemmaForBlockDiffusion"],
        "model_type": "diffusion_gemma",
        "text_config": text_config(config),
        "vision_config": vision_config(),
        "canvas_length": config.canvas_length,
        "dtype": "bfloat16",
        "tie_word_embeddings": True,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "bos_token_id": BOS,
        "boi_token_id": unused - 3,
        "eoi_token_id": unused - 2,
        "image_token_id": unused - 1,
        "initializer_range": 0.02,
    }


def generation_config() -> dict[str, Any]:
    """The contents of generation_config.json: the published sampler settings."""
    return {
        "max_new_tokens": 256,
        "max_denoising_steps": 48,
        "t_min": 0.4,
        "t_max": 0.8,
        "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1},
        "stability_threshold": 1,
        "confidence_threshold": 0.005,
        "eos_token_id": [EOS],
        "pad_token_id": PAD,
        "bos_token_id": BOS,
    }


def load_weights(folder: Path) -> tuple[ModelConfig, Weights]:
    """Sizes and fused weights that training.train wrote to ``folder``."""
    record = json.loads((folder / "weights.json").read_text())
    sizes = record["config"] | {"layer_pattern": tuple(record["config"]["layer_pattern"])}
    weights: Weights = {}
    for file in sorted(folder.glob("weights-*.safetensors")):
        weights |= load_file(file)
    return ModelConfig(**sizes), weights


def _layer_weights(config: ModelConfig, kind: str, layer: Weights) -> Iterator[tuple[str, Tensor]]:
    query, key = config.query_heads * config.head_size, config.key_value_heads * config.head_size
    yield "self_attn.q_proj.weight", layer["qkv"][:query]
    yield "self_attn.k_proj.weight", layer["qkv"][query : query + key]
    if kind == "sliding":  # full layers take their keys as values
        yield "self_attn.v_proj.weight", layer["qkv"][query + key :]
    yield "self_attn.o_proj.weight", layer["output"]
    yield "self_attn.q_norm.weight", layer["q_norm"]
    yield "self_attn.k_norm.weight", layer["k_norm"]
    gate, up = layer["mlp_gate_up"].chunk(2)
    yield "mlp.gate_proj.weight", gate
    yield "mlp.up_proj.weight", up
    yield "mlp.down_proj.weight", layer["mlp_down"]
    yield "experts.gate_up_proj", layer["expert_gate_up"][None]
    yield "experts.down_proj", layer["expert_down"][None]
    yield "router.proj.weight", torch.zeros(1, config.hidden_size)
    yield "router.scale", torch.ones(config.hidden_size)
    yield "router.per_expert_scale", torch.ones(1)
    for name in LAYER_NORMS:
        yield f"{name}.weight", layer[name]


def published_weights(config: ModelConfig, weights: Weights) -> Iterator[tuple[str, Tensor]]:
    """Names and values of the published layout from the fused weights."""
    yield f"{DECODER}.embed_tokens.weight", weights["embedding"]
    yield f"{DECODER}.norm.weight", weights["final_norm"]
    gate, up = weights["self_conditioning.gate_up"].chunk(2)
    yield f"{DECODER}.self_conditioning.gate_proj.weight", gate
    yield f"{DECODER}.self_conditioning.up_proj.weight", up
    yield f"{DECODER}.self_conditioning.down_proj.weight", weights["self_conditioning.down"]
    yield f"{DECODER}.self_conditioning.pre_norm.weight", weights["self_conditioning.pre_norm"]
    for number, kind in enumerate(config.layer_pattern):
        prefix = f"layers.{number}."
        layer = {
            name.removeprefix(prefix): values
            for name, values in weights.items()
            if name.startswith(prefix)
        }
        for name, values in _layer_weights(config, kind, layer):
            yield f"{DECODER}.layers.{number}.{name}", values
        for side in (f"{ENCODER}.language_model", DECODER):
            yield f"{side}.layers.{number}.layer_scalar", torch.ones(1)
    yield from _vision_weights(config)


def fused_weights(folder: Path) -> tuple[ModelConfig, Weights]:
    """Sizes and fused fp32 weights of a checkpoint that ``export`` wrote: training can go on from
    one. Values are as exact as the FP8 file."""
    text = json.loads((folder / "config.json").read_text())["text_config"]
    config = ModelConfig(
        vocab_size=text["vocab_size"],
        hidden_size=text["hidden_size"],
        intermediate_size=text["intermediate_size"],
        expert_intermediate_size=text["moe_intermediate_size"],
        query_heads=text["num_attention_heads"],
        key_value_heads=text["num_key_value_heads"],
        head_size=text["head_dim"],
        layer_pattern=tuple(kind.removesuffix("_attention") for kind in text["layer_types"]),
    )
    held: Weights = {}
    for file in sorted(folder.glob("model-*.safetensors")):
        held |= load_file(file)
    held = {
        name.removeprefix(f"{DECODER}."): values.float()
        for name, values in held.items()
        if name.startswith(f"{DECODER}.")
    }
    conditioning = "self_conditioning"
    fused: Weights = {
        "embedding": held["embed_tokens.weight"],
        "final_norm": held["norm.weight"],
        f"{conditioning}.gate_up": _join(held, f"{conditioning}.", "gate_proj", "up_proj"),
        f"{conditioning}.down": held[f"{conditioning}.down_proj.weight"],
        f"{conditioning}.pre_norm": held[f"{conditioning}.pre_norm.weight"],
    }
    for number in range(len(config.layer_pattern)):
        layer = f"layers.{number}."
        attention = f"{layer}self_attn."
        fused[f"{layer}qkv"] = _join(held, attention, "q_proj", "k_proj", "v_proj")
        fused[f"{layer}output"] = held[f"{attention}o_proj.weight"]
        fused[f"{layer}mlp_gate_up"] = _join(held, f"{layer}mlp.", "gate_proj", "up_proj")
        fused[f"{layer}mlp_down"] = held[f"{layer}mlp.down_proj.weight"]
        fused[f"{layer}expert_gate_up"] = held[f"{layer}experts.gate_up_proj"][0]
        fused[f"{layer}expert_down"] = held[f"{layer}experts.down_proj"][0]
        for name in ("q_norm", "k_norm"):
            fused[layer + name] = held[f"{attention}{name}.weight"]
        for name in LAYER_NORMS:
            fused[layer + name] = held[f"{layer}{name}.weight"]
    return config, fused


def _join(held: Weights, prefix: str, *names: str) -> Tensor:
    """The named matrices under each other; full layers have no ``v_proj``."""
    keys = [f"{prefix}{name}.weight" for name in names]
    return torch.cat([held[key] for key in keys if key in held])


def _vision_weights(config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    torch.manual_seed(0)
    settings = Gemma4VisionConfig(**vision_config())
    tower = AutoModel.from_config(settings, dtype=torch.float32)
    for name, values in tower.state_dict().items():
        yield f"{ENCODER}.vision_tower.{name}", values
    projection = torch.zeros(config.hidden_size, settings.hidden_size)
    yield f"{ENCODER}.embed_vision.embedding_projection.weight", projection


def stored(values: Tensor) -> Tensor:
    """What the file holds: matrices as FP8, everything else in bf16."""
    return (to_fp8(values) if values.dim() > 1 else values.bfloat16()).contiguous().clone()


def write_shards(weights: Iterator[tuple[str, Tensor]], out: Path) -> None:
    """Write safetensors shards of at most ``SHARD_BYTES`` and their index."""
    shards: list[Weights] = [{}]
    room = SHARD_BYTES
    for name, values in weights:
        values = stored(values)
        if values.nbytes > room:
            shards.append({})
            room = SHARD_BYTES
        shards[-1][name] = values
        room -= values.nbytes
    index: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, out / file, metadata={"format": "pt"})
        (out / file).chmod(0o644)
        index |= dict.fromkeys(shard, file)
    total = sum(values.nbytes for shard in shards for values in shard.values())
    write_json(
        out / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": dict(sorted(index.items()))},
    )


def write_json(file: Path, value: object) -> None:
    """Readable JSON with a line end."""
    file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def write_tokenizer(source: Path, out: Path) -> None:
    """Copy the tokenizer's files without their white space."""
    for name in TOKENIZER_FILES:
        value = json.loads((source / name).read_text(encoding="utf-8"))
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        (out / name).write_text(text + "\n", encoding="utf-8")


def write_digests(out: Path) -> None:
    """SHA-256 of every file of the checkpoint but the model card, whose text may change."""
    files = sorted(file for file in out.iterdir() if file.suffix in {".json", ".safetensors"})
    digests = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.name != "digests.json"
    }
    write_json(out / "digests.json", digests)


def export(config: ModelConfig, weights: Weights, out: Path, tokenizer: Path | None) -> None:
    """Write the whole checkpoint folder; ``tokenizer`` is the folder with the tokenizer's files."""
    out.mkdir(parents=True, exist_ok=True)
    for stale in out.glob("model-*.safetensors"):
        stale.unlink()
    write_json(out / "config.json", model_config(config))
    write_json(out / "generation_config.json", generation_config())
    write_shards(published_weights(config, weights), out)
    if tokenizer is not None:
        write_tokenizer(tokenizer, out)
    write_digests(out)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("state", type=Path, help="a weights-STEP folder of training.train")
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, default=Path(".train"))
    options = parser.parse_args()
    config, weights = load_weights(options.state)
    export(config, weights, options.out, options.tokenizer)
    files = [file for file in options.out.iterdir() if file.is_file()]
    print(f"{options.out}: {sum(file.stat().st_size for file in files):,} bytes")


if __name__ == "__main__":
    main()
