"""What a checkpoint's config.json says, checked; every refusal is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import msgspec

from dg_engine.engine import EngineError

Json = dict[str, Any]
SOFTCAP = 30.0
"""Of the published checkpoint's logits, where a config.json leaves it out."""


class LayerConfig(msgspec.Struct, frozen=True):
    """One decoder layer's attention."""

    sliding: bool
    head_dim: int
    key_value_heads: int


class RopeConfig(msgspec.Struct, frozen=True):
    """Rotary frequencies of one attention kind."""

    kind: str
    """`default`, or `proportional`: frequencies of the whole head, the later ones zero."""
    theta: float
    partial: float
    factor: float


class ModelConfig(msgspec.Struct, frozen=True):
    """The text half of a DiffusionGemma checkpoint."""

    name: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    heads: int
    layers: tuple[LayerConfig, ...]
    sliding_window: int
    sliding_rope: RopeConfig
    full_rope: RopeConfig
    experts: int
    active_experts: int
    expert_size: int
    norm_epsilon: float
    softcap: float
    canvas_length: int
    max_positions: int
    eos: tuple[int, ...]
    quantization: str | None
    """compressed-tensors format, None for plain weights."""
    compact: bool
    """Whether our own forward carries it; otherwise transformers does."""

    @property
    def parameters(self) -> int:
        """Weights of the text half, counted as the published checkpoint stores them."""
        per_layer = sum(
            self.hidden_size * layer.head_dim
            * (2 * self.heads + (1 + layer.sliding) * layer.key_value_heads)
            + 2 * layer.head_dim
            for layer in self.layers
        )  # fmt: skip
        dense = 3 * self.hidden_size * self.intermediate_size
        experts = self.experts * (
            3 * self.hidden_size * self.expert_size + self.hidden_size + 1
        )  # fmt: skip
        rest = len(self.layers) * (dense + experts + 8 * self.hidden_size)
        embedding = self.vocab_size * self.hidden_size
        return per_layer + rest + embedding + 2 * self.hidden_size + dense


def softcap_of(loaded: float | None) -> float:
    """The cap of the logits by a configuration that transformers has loaded.

    Where config.json leaves it out, transformers fills in the published one since 5.17, and None
    before.
    """
    return SOFTCAP if loaded is None else float(loaded)


def _read_json(path: Path) -> Json:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EngineError(
            f"{path} cannot be read ({error.strerror}); name a DiffusionGemma checkpoint folder."
        ) from error
    except ValueError as error:
        raise EngineError(f"{path} is not JSON ({error}); copy the file again.") from error
    if not isinstance(value, dict):
        raise EngineError(f"{path} holds no JSON object; copy the file again.")
    return cast(Json, value)


def _rope(parameters: Json) -> RopeConfig:
    kind = str(parameters.get("rope_type", "default"))
    return RopeConfig(
        kind,
        float(parameters["rope_theta"]),
        float(parameters.get("partial_rotary_factor", 1.0)),
        float(parameters.get("factor", 1.0)),
    )


def _layers(text: Json) -> tuple[LayerConfig, ...]:
    """Layer kinds, with the full-attention overrides in either of the two spellings."""
    count = int(text["num_hidden_layers"])
    kinds = text.get("layer_types") or [
        "full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(count)
    ]
    published = "per_layer_config" not in text
    overrides: Json = text.get("per_layer_config") or {}
    layers: list[LayerConfig] = []
    for index, kind in enumerate(kinds):
        sliding = kind == "sliding_attention" and index != count - 1
        head_dim = int(text["head_dim"])
        key_value_heads = int(text["num_key_value_heads"])
        if not sliding and published:
            head_dim = int(text.get("global_head_dim") or 512)
            key_value_heads = int(text.get("num_global_key_value_heads") or key_value_heads)
        override: Json = overrides.get(str(index), {})
        head_dim = int(override.get("head_dim", head_dim))
        key_value_heads = int(override.get("num_key_value_heads", key_value_heads))
        layers.append(LayerConfig(sliding, head_dim, key_value_heads))
    return tuple(layers)


def _ends_of(folder: Path) -> Any:
    """The end tokens that generation_config.json names, None where it names none."""
    path = folder / "generation_config.json"
    return _read_json(path).get("eos_token_id") if path.exists() else None


def _ids(value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple(cast(list[int], value)) if isinstance(value, list) else (int(value),)


def _quantization(config: Json, path: Path, any_weights: bool) -> str | None:
    block: Json | None = config.get("quantization_config")
    if not block:
        return None
    method, form = block.get("quant_method"), str(block.get("format"))
    if any_weights:
        return form
    if method != "compressed-tensors" or form not in ("float-quantized", "int-quantized"):
        raise EngineError(
            f"{path} asks for {method} weights in the format {form}, which this engine does not "
            "read; use a bf16, FP8 or int8 checkpoint, or the vLLM engine on a GPU."
        )
    return form


def read_config(folder: Path, *, any_weights: bool = False) -> ModelConfig:
    """Read config.json and generation_config.json of a checkpoint folder.

    `any_weights` takes every quantisation, for engines that leave the weights to vLLM.
    Raises EngineError with one sentence when the folder is not a DiffusionGemma checkpoint.
    """
    if not folder.is_dir():
        raise EngineError(f"{folder} is no folder; name a DiffusionGemma checkpoint folder.")
    path = folder / "config.json"
    config = _read_json(path)
    if config.get("model_type") != "diffusion_gemma":
        raise EngineError(
            f"{path} describes a {config.get('model_type')!r} model, not 'diffusion_gemma'; "
            "name a DiffusionGemma checkpoint folder."
        )
    text: Json = config.get("text_config") or {}
    ends = _ends_of(folder)
    try:
        ropes: Json = text.get("rope_parameters") or {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
            "full_attention": {
                "rope_type": "proportional",
                "partial_rotary_factor": 0.25,
                "rope_theta": 1_000_000.0,
            },
        }
        sliding_rope = _rope(ropes.get("sliding_attention") or ropes["full_attention"])
        full_rope = _rope(ropes.get("full_attention") or ropes["sliding_attention"])
        kinds = {sliding_rope.kind, full_rope.kind}
        compact = (
            not text.get("attention_bias")
            and text.get("use_bidirectional_attention") in (None, "vision")
            and text.get("hidden_activation", "gelu_pytorch_tanh") == "gelu_pytorch_tanh"
            and kinds <= {"default", "proportional"}
        )
        return ModelConfig(
            name=folder.resolve().name,
            vocab_size=int(text["vocab_size"]),
            hidden_size=int(text["hidden_size"]),
            intermediate_size=int(text["intermediate_size"]),
            heads=int(text["num_attention_heads"]),
            layers=_layers(text),
            sliding_window=int(text.get("sliding_window", 512)),
            sliding_rope=sliding_rope,
            full_rope=full_rope,
            experts=int(text["num_experts"]),
            active_experts=int(text["top_k_experts"]),
            expert_size=int(text["moe_intermediate_size"]),
            norm_epsilon=float(text.get("rms_norm_eps", 1e-6)),
            softcap=float(text.get("final_logit_softcapping", SOFTCAP)),
            canvas_length=int(config.get("canvas_length") or 256),
            max_positions=int(text.get("max_position_embeddings", 131_072)),
            eos=_ids(ends) or _ids(text.get("eos_token_id")),
            quantization=_quantization(config, path, any_weights),
            compact=compact,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(
            f"{path} lacks or misstates {error}; copy the published config.json again."
        ) from error
