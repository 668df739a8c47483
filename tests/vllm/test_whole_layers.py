"""Layers whose parts are joined compute what one layer after another would."""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("vllm.model_executor.models.gemma4")

from dg_engine.vllm_plugin import canvas_attention, whole_layers
from dg_engine.vllm_plugin.feed_forward import WHOLE, Unfit
from dg_kernels import reference

HEADS, KEY_HEADS, HEAD, HIDDEN, EPSILON, PAGE = 4, 2, 16, 32, 1e-6, 4


def linear(chance: torch.Generator, columns: int, depth: int) -> Any:
    """FP8 as vLLM keeps it for a product: turned, a scale for each column."""
    weight = torch.randn(columns, depth, generator=chance)
    scales = weight.abs().amax(1, keepdim=True) / reference.GREATEST
    return SimpleNamespace(
        weight=(weight / scales).to(reference.FP8).t(), weight_scale=scales, bias=None
    )


def layer_of(chance: torch.Generator, number: int) -> Any:
    """What a layer's ends read of a decoder layer."""

    def norm(size: int) -> Any:
        weight = (1 + 0.2 * torch.randn(size, generator=chance)).bfloat16()
        return SimpleNamespace(weight=weight, variance_epsilon=EPSILON)

    angle = torch.arange(50)[:, None] * torch.rand(HEAD // 2, generator=chance)
    return SimpleNamespace(
        input_layernorm=norm(HIDDEN),
        self_attn=SimpleNamespace(
            qkv_proj=linear(chance, (HEADS + 2 * KEY_HEADS) * HEAD, HIDDEN),
            o_proj=linear(chance, HIDDEN, HEADS * HEAD),
            q_norm=norm(HEAD), k_norm=norm(HEAD), num_heads=HEADS, head_dim=HEAD,
            is_kv_shared_layer=False,
            rotary_emb=SimpleNamespace(
                is_neox_style=True, rotary_dim=HEAD,
                cos_sin_cache=torch.cat((angle.cos(), angle.sin()), 1).bfloat16(),
            ),
            attn=SimpleNamespace(layer_name=f"layers.{number}.attn"),
        ),
    )  # fmt: skip


class Block:
    """A feed-forward block that is easily told."""

    def __call__(self, attended: Tensor, residual: Tensor) -> Tensor:
        return residual + attended

    def for_next(self, attended: Tensor, residual: Tensor, following: Tensor) -> reference.Left:
        out = self(attended, residual)
        rows = reference.normed(out, following, EPSILON)
        return reference.Left(out, *reference.quantised(rows, reference.FP8))


def product(rows: Tensor, weight: Tensor, scales: Tensor, columns: Tensor, dtype: Any) -> Tensor:
    """cutlass_scaled_mm."""
    return ((rows.float() * scales) @ (weight.float() * columns.flatten())).to(dtype)


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, Tensor]:
    """Pages of each layer, beside references in place of what needs a GPU."""
    kept: dict[str, Tensor] = {}

    def rotated(*args: Any) -> Tensor:
        *given, written, slots = args
        query, key, value = reference.rotate(*given)
        for row, slot in enumerate(slots.tolist()):
            for page, of in zip(written, (key, value), strict=True):
                page[slot // PAGE, slot % PAGE] = of[row]
        return query

    def quantised(given: Tensor, weight: Any = None, epsilon: float = 0.0):
        rows = given if weight is None else reference.normed(given, weight, epsilon)
        return reference.quantised(rows, reference.FP8)

    def context(name: str) -> tuple[None, None, Tensor, Tensor]:
        cache = torch.zeros(5, KEY_HEADS, PAGE, 2 * HEAD, dtype=torch.bfloat16)
        return None, None, kept.setdefault(name, cache), torch.arange(7) + 3

    def attend(query: Tensor, layer: str) -> Tensor:
        keys = kept[layer].transpose(1, 2)[..., :HEAD].reshape(-1, KEY_HEADS, HEAD)[3:10]
        return query + keys.repeat_interleave(HEADS // KEY_HEADS, 1)

    monkeypatch.setattr(whole_layers, "rotate", rotated)
    monkeypatch.setattr(whole_layers, "quantise", quantised)
    monkeypatch.setattr(whole_layers, "_attend", attend)
    monkeypatch.setattr(whole_layers.vllm_ops, "cutlass_scaled_mm", product)
    monkeypatch.setattr(whole_layers.vllm_attention, "get_attention_context", context)
    return kept


def plain(layer: Any, positions: Tensor, hidden: Tensor) -> Tensor:
    """The same by itself."""
    attention = layer.self_attn
    rows = reference.normed(hidden, layer.input_layernorm.weight, EPSILON)
    qkv = product(
        *_apart(rows, attention.qkv_proj.weight), attention.qkv_proj.weight_scale, torch.bfloat16
    )
    query, key, _ = reference.rotate(
        qkv, positions, attention.rotary_emb.cos_sin_cache, attention.q_norm.weight,
        attention.k_norm.weight, EPSILON, HEADS,
    )  # fmt: skip
    attended = (query + key.repeat_interleave(HEADS // KEY_HEADS, 1)).flatten(1)
    return hidden + product(
        *_apart(attended, attention.o_proj.weight), attention.o_proj.weight_scale, torch.bfloat16
    )


def _apart(rows: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    multiplied, scales = reference.quantised(rows, reference.FP8)
    return multiplied, weight, scales


def test_two_layers_are_one_after_the_other(pages: dict[str, Tensor]):
    chance = torch.Generator().manual_seed(1)
    layers = {f"layers.{n}": layer_of(chance, n) for n in range(2)}
    blocks: Any = {name: Block() for name in layers}
    assert whole_layers.join(layers, blocks) == 2
    positions = torch.arange(7) * 5
    hidden = torch.randn(7, HIDDEN, generator=chance).bfloat16()
    expected, found, carried = hidden, hidden, None
    for layer in layers.values():
        expected = plain(layer, positions, expected)
        found, carried = getattr(layer, WHOLE)(positions, found, carried)
        assert torch.equal(found, expected)
    assert carried is None
    assert set(pages) == {"layers.0.attn", "layers.1.attn"}


def test_what_attention_leaves_in_parts_is_joined_for_the_product(
    pages: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
):
    chance = torch.Generator().manual_seed(5)
    layer = layer_of(chance, 0)
    blocks: Any = {"layers.0": Block()}
    assert whole_layers.join({"layers.0": layer}, blocks) == 1
    whole = whole_layers._attend

    def attend(query: Tensor, name: str) -> Tensor:
        assert name in canvas_attention._in_parts
        parts: Any = whole(query, name)
        canvas_attention._in_parts[name] = parts
        return torch.full_like(query, torch.nan)

    def joined(parts: Any) -> tuple[Tensor, Tensor]:
        return reference.quantised(parts.flatten(1), reference.FP8)

    monkeypatch.setattr(whole_layers, "_attend", attend)
    monkeypatch.setattr(whole_layers, "join_rows", joined)
    hidden = torch.randn(7, HIDDEN, generator=chance).bfloat16()
    for positions in (torch.arange(7), torch.arange(7) + 9):
        out, _ = getattr(layer, WHOLE)(positions, hidden, None)
        assert torch.equal(out, plain(layer, positions, hidden))
    assert canvas_attention.take_parts("layers.0.attn") is None


def test_a_compiler_sees_what_a_layer_hands_on(monkeypatch: pytest.MonkeyPatch):
    chance = torch.Generator().manual_seed(2)
    layers = {f"layers.{n}": layer_of(chance, n) for n in range(2)}
    blocks: Any = {name: Block() for name in layers}
    whole_layers.join(layers, blocks)
    monkeypatch.setattr(whole_layers, "_attend", lambda query, _: query + 1)

    class Model(torch.nn.Module):
        def forward(self, positions: Tensor, hidden: Tensor) -> Tensor:
            carried = None
            for layer in layers.values():
                hidden, carried = getattr(layer, WHOLE)(positions, hidden, carried)
            return hidden

    rows = torch.export.Dim("rows", min=2, max=8192)
    exported = torch.export.export(
        Model(),
        (torch.arange(16), torch.randn(16, HIDDEN).bfloat16()),
        dynamic_shapes={"positions": {0: rows}, "hidden": {0: rows}},
    )
    calls = [str(node.target) for node in exported.graph.nodes if "dg_lsp" in str(node.target)]
    short = [call.split(".")[1] for call in calls]
    assert short == ["begin_layer", *["heads_of_layer", "rest_of_layer"] * 2]


def test_a_layer_behind_one_that_is_not_joined_begins_anew(pages: dict[str, Tensor]):
    chance = torch.Generator().manual_seed(3)
    layers = {f"layers.{n}": layer_of(chance, n) for n in range(3)}
    layers["layers.1"].self_attn.is_kv_shared_layer = True
    blocks: Any = {name: Block() for name in layers}
    assert whole_layers.join(layers, blocks) == 2
    assert not hasattr(layers["layers.1"], WHOLE)
    hidden = torch.randn(7, HIDDEN, generator=chance).bfloat16()
    out, carried = getattr(layers["layers.0"], WHOLE)(torch.arange(7), hidden, None)
    assert carried is None
    assert torch.equal(out, plain(layers["layers.0"], torch.arange(7), hidden))


@pytest.mark.parametrize("changed", ["bias", "turned", "fixed"])
def test_layers_of_another_kind_are_left_alone(changed: str):
    layer = layer_of(torch.Generator().manual_seed(4), 0)
    attention = layer.self_attn
    if changed == "bias":
        attention.qkv_proj.bias = torch.ones(1)
    elif changed == "turned":
        attention.rotary_emb.rotary_dim = HEAD // 2
    else:
        attention.o_proj.input_scale = torch.ones(1)
    block: Any = Block()
    with pytest.raises(Unfit):
        whole_layers.WholeLayer("layers.0", layer, block, None)
