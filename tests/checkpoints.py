"""Random DiffusionGemma checkpoints, written by transformers, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    DiffusionGemmaConfig,
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaTextConfig,
    Gemma4VisionConfig,
)

SMALL: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "sliding_window": 64,
    "num_experts": 1,
    "top_k_experts": 1,
    "moe_intermediate_size": 32,
    "max_position_embeddings": 512,
}
SPECIAL = ("<pad>", "<eos>", "<bos>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_end>")


def byte_tokenizer(folder: Path) -> None:
    """A tokenizer of the special tokens and one token per byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate((*SPECIAL, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.save(str(folder / "tokenizer.json"))


def write_checkpoint(
    folder: Path,
    *,
    canvas_length: int = 16,
    seed: int = 0,
    embedding_scale: float = 15.0,
    **text: Any,
) -> DiffusionGemmaForBlockDiffusion:
    """Write a checkpoint with every weight random, norms and scalars too; return the model."""
    torch.manual_seed(seed)
    fields = {**SMALL, **text}
    fields.setdefault("global_head_dim", 32)
    fields.setdefault("num_global_key_value_heads", 1)
    vision = Gemma4VisionConfig(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, head_dim=8, position_embedding_size=4, pooling_kernel_size=1,
    )  # fmt: skip
    config = DiffusionGemmaConfig(
        text_config=DiffusionGemmaTextConfig(**fields),
        vision_config=vision,
        canvas_length=canvas_length,
        image_token_id=10**6,
    )
    model = DiffusionGemmaForBlockDiffusion(config).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(torch.rand_like(parameter) + 0.5)
            elif "embed_tokens" in name:
                # Logits as peaked as a trained model's: entropies differ between positions.
                parameter.mul_(embedding_scale)
        for name, buffer in model.named_buffers():
            if name.endswith("layer_scalar"):
                buffer.fill_(0.7 + 0.5 * torch.rand(()).item())
    model.save_pretrained(folder)
    byte_tokenizer(folder)
    path = folder / "generation_config.json"
    path.write_text(
        json.dumps(
            {
                "max_new_tokens": canvas_length,
                "max_denoising_steps": 12,
                "t_min": 0.4,
                "t_max": 0.8,
                "sampler_config": {
                    "_cls_name": "EntropyBoundSamplerConfig",
                    "entropy_bound": 0.1,
                },
                "stability_threshold": 1,
                "confidence_threshold": 0.005,
                "eos_token_id": [1],
                "pad_token_id": 0,
                "bos_token_id": 2,
            }
        )
    )
    return DiffusionGemmaForBlockDiffusion.from_pretrained(folder, dtype=torch.float32).eval()
