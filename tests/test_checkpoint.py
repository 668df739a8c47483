"""Checkpoint folders: what is read, and the one sentence that a broken one gets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from dg_engine.engine import EngineError
from dg_engine.job import MaskRule
from dg_engine.loader import load
from dg_engine.model_config import read_config, softcap_of
from safetensors.torch import load_file, save_file

from tests.checkpoints import write_checkpoint
from tests.engine_fixtures import job, solve, tiny_checkpoint

CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the small checkpoint that a test may break."""
    copy = tmp_path / "model"
    shutil.copytree(tiny_checkpoint(), copy)
    return copy


def edit_json(path: Path, change: Callable[[dict], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def drop_tensor(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors["model.decoder.layers.2.mlp.up_proj.weight"]
    save_file(tensors, path)


def point_outside(folder: Path) -> None:
    index = {"weight_map": {"model.decoder.norm.weight": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def quantise_as(form: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        block = {"quant_method": "compressed-tensors", "format": form}
        edit_json(folder / "config.json", lambda c: c.update(quantization_config=block))

    return change


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (lambda f: shutil.rmtree(f), "is no folder"),
    "no config": (lambda f: (f / "config.json").unlink(), r"config.json cannot be read"),
    "config is no JSON": (lambda f: (f / "config.json").write_text("{"), "is not JSON"),
    "config is a list": (lambda f: (f / "config.json").write_text("[]"), "no JSON object"),
    "another model": (
        lambda f: edit_json(f / "config.json", lambda c: c.update(model_type="llama")),
        "'llama' model, not 'diffusion_gemma'",
    ),
    "a field is missing": (
        lambda f: edit_json(f / "config.json", lambda c: c["text_config"].pop("hidden_size")),
        "lacks or misstates 'hidden_size'",
    ),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
    "truncated weights": (truncate, r"is truncated \(\d+ of \d+ bytes\)"),
    "not safetensors": (
        lambda f: (f / "model.safetensors").write_bytes(b"\x80\x04" * 400),
        "is not a safetensors file",
    ),
    "a tensor is missing": (drop_tensor, r"has no tensor model.decoder.layers.2.mlp.up_proj"),
    "shapes of another model": (
        lambda f: edit_json(
            f / "config.json", lambda c: c["text_config"].update(intermediate_size=64)
        ),
        "of two different models",
    ),
    "an index that leaves the folder": (point_outside, "points outside its folder"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json cannot be read"),
    "a tokenizer that is none": (
        lambda f: (f / "tokenizer.json").write_text("{}"),
        "is not a tokenizer file",
    ),
    "a tokenizer of a larger model": (
        lambda f: edit_json(f / "config.json", lambda c: c["text_config"].update(vocab_size=100)),
        "belong to two different checkpoints",
    ),
    "weights in an unknown format": (quantise_as("nvfp4-pack-quantized"), "which this engine does"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_checkpoint_gets_one_sentence_that_names_what_and_the_fix(folder: Path, name: str):
    breaks, words = BROKEN[name]
    breaks(folder)
    with pytest.raises(EngineError, match=words) as caught:
        load(folder, device=CPU, dtype=torch.float32)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert str(folder.parent) in sentence


def answer_of(folder: Path) -> list[list[int]]:
    return solve(load(folder, device=CPU, dtype=torch.float32), job(max_steps=1))[-1].ids


def test_shards_and_one_file_give_the_same_answer(folder: Path):
    expected = answer_of(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, held in shards.items():
        save_file({n: tensors[n] for n in held}, folder / file)
    weight_map = {n: file for file, held in shards.items() for n in held}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert answer_of(folder) == expected


def test_fp8_weights_without_scales_are_read_as_their_values(folder: Path):
    path = folder / "model.safetensors"
    tensors = {
        name: t.to(torch.float8_e4m3fn) if t.dim() >= 2 and "decoder" in name else t
        for name, t in load_file(path).items()
    }
    save_file({n: t.float() for n, t in tensors.items()}, path)
    expected = answer_of(folder)
    save_file(tensors, path)
    assert answer_of(folder) == expected


@pytest.mark.parametrize(
    ("form", "dtype"), [("int-quantized", torch.int8), ("float-quantized", torch.float8_e4m3fn)]
)
def test_scaled_weights_are_read_with_their_scale_per_row(
    folder: Path, form: str, dtype: torch.dtype
):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    largest = 127.0 if dtype is torch.int8 else 448.0
    scaled, plain = dict(tensors), dict(tensors)
    for name, tensor in tensors.items():
        if not name.endswith(("q_proj.weight", "mlp.down_proj.weight")) or "decoder" not in name:
            continue
        scale = tensor.abs().amax(1, keepdim=True) / largest
        stored = (tensor / scale).round() if dtype is torch.int8 else tensor / scale
        scaled[name], scaled[f"{name}_scale"] = stored.to(dtype), scale
        plain[name] = stored.to(dtype).float() * scale
    save_file(plain, path)
    expected = answer_of(folder)
    save_file(scaled, path)
    quantise_as(form)(folder)
    assert answer_of(folder) == expected


def test_int8_weights_without_a_scale_are_refused(folder: Path):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = "model.decoder.layers.0.self_attn.q_proj.weight"
    tensors[name] = tensors[name].to(torch.int8)
    save_file(tensors, path)
    with pytest.raises(EngineError, match="int8 without the tensor"):
        answer_of(folder)


def test_the_published_spelling_of_full_layers_is_read_as_transformers_reads_it(tmp_path: Path):
    write_checkpoint(tmp_path)
    spelled_out = read_config(tmp_path)

    def publish(config: dict) -> None:
        del config["text_config"]["per_layer_config"]
        config["text_config"].update(global_head_dim=32, num_global_key_value_heads=1)

    edit_json(tmp_path / "config.json", publish)
    assert read_config(tmp_path) == spelled_out
    assert [layer.head_dim for layer in spelled_out.layers] == [16, 32, 16, 32]


def test_the_reference_refuses_the_rule_that_it_does_not_know():
    with pytest.raises(EngineError, match="anchored mask rule only"):
        load(tiny_checkpoint(), device=CPU, reference=True, mask_rule=MaskRule.SYMMETRIC)


def test_logits_are_capped_alike_whether_or_not_transformers_fills_the_cap_in(tmp_path: Path):
    write_checkpoint(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    config["text_config"].pop("final_logit_softcapping", None)
    file.write_text(json.dumps(config))
    assert read_config(tmp_path).softcap == softcap_of(None) == 30.0
    assert softcap_of(12.5) == 12.5
    assert softcap_of(0.0) == 0.0
