"""Decoder layers take a block of fewer launches where they have one, and upstream's otherwise."""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

gemma4 = pytest.importorskip("vllm.model_executor.models.gemma4")

from dg_engine.vllm_plugin import feed_forward, fused_layers  # noqa: E402 - vLLM comes first
from dg_engine.vllm_plugin.compat import knows_layers  # noqa: E402
from dg_engine.vllm_plugin.feed_forward import Unfit  # noqa: E402


class Layer(torch.nn.Module):
    """What a decoder layer's forward reads in front of its block."""

    def __init__(self, name: str | None) -> None:
        super().__init__()
        if name is not None:
            setattr(self, feed_forward.NAME, name)

    def input_layernorm(self, rows: Tensor) -> Tensor:
        return rows + 1

    def self_attn(self, *, positions: Tensor, hidden_states: Tensor) -> Tensor:
        return hidden_states * positions[:, None]


class Model(torch.nn.Module):
    """One layer, by the forward that decoder layers have."""

    def __init__(self, name: str | None) -> None:
        super().__init__()
        self.layer = Layer(name)

    def forward(self, positions: Tensor, rows: Tensor) -> Tensor:
        layer: Any = gemma4.Gemma4DecoderLayer
        return layer.forward(self.layer, positions, rows, None)[0]


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Layers that choose, with upstream's forward behind them in place of the real one."""
    seen: list[Tensor] = []

    def upstream(
        self: Any, positions: Tensor, hidden_states: Tensor, residual: Any, **_: Any
    ) -> tuple[Tensor, None]:
        seen.append(hidden_states)
        return hidden_states, None

    monkeypatch.setattr(gemma4.Gemma4DecoderLayer, "forward", upstream)
    fused_layers._let_layers_choose()
    once = gemma4.Gemma4DecoderLayer.forward
    fused_layers._let_layers_choose()
    assert gemma4.Gemma4DecoderLayer.forward is once
    return seen


def test_a_layer_with_a_block_calls_it_for_any_number_of_rows(chosen: list[Tensor]):
    rows = torch.export.Dim("rows", min=2, max=8192)
    exported = torch.export.export(
        Model("layers.3"),
        (torch.arange(16), torch.randn(16, 8)),
        dynamic_shapes={"positions": {0: rows}, "rows": {0: rows}},
    )
    calls = [node for node in exported.graph.nodes if "dg_lsp" in str(node.target)]
    assert [node.args[2] for node in calls] == ["layers.3"]
    assert not chosen


def test_a_layer_without_one_is_upstreams(chosen: list[Tensor]):
    rows = torch.randn(4, 8)
    assert torch.equal(Model(None)(torch.arange(4), rows), rows)
    assert len(chosen) == 1


def test_a_block_answers_by_its_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(feed_forward._blocks, "doubling", lambda attended, _: 2 * attended)
    rows = torch.randn(4, 8)
    assert torch.equal(feed_forward.feed_forward_op(rows, rows, "doubling"), 2 * rows)


def test_what_is_not_fp8_by_channel_has_no_block():
    linear = torch.nn.Linear(8, 4)
    with pytest.raises(Unfit, match="not FP8"):
        feed_forward.weights_of(linear)
    model = torch.nn.Sequential(linear)
    assert fused_layers.fuse(model, torch.device("cpu")) == 0


class CompressedTensorsW8A8Fp8MoEMethod:
    """By its name, as the block knows it."""

    def __init__(self, static: bool) -> None:
        self.static_input_scales = static


@pytest.mark.parametrize(
    ("static", "input_scale"), [(True, None), (False, torch.ones(1))], ids=["experts", "dense"]
)
def test_rows_of_fixed_scales_have_no_block(static: bool, input_scale: Tensor | None):
    method = CompressedTensorsW8A8Fp8MoEMethod(static)
    linear = SimpleNamespace(input_scale=input_scale)
    layer = SimpleNamespace(
        moe=SimpleNamespace(
            experts=SimpleNamespace(routed_experts=SimpleNamespace(quant_method=method))
        ),
        mlp=SimpleNamespace(gate_up_proj=linear, down_proj=linear),
    )
    with pytest.raises(Unfit, match="fixed factors"):
        feed_forward.FeedForward(layer)


@pytest.mark.parametrize(
    ("changed", "fuses"),
    [
        ({}, True),
        ({"moe_backend": "flashinfer_cutlass"}, False),
        ({"moe_backend": "auto"}, False),
        ({"additional": {"dg_fused_layers": False}}, False),
        ({"world_size": 2}, False),
        ({"version": "0.32.0"}, False),
        ({"lora": object()}, False),
    ],
)
def test_layers_are_fused_where_their_weights_are_as_triton_wants_them(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], fuses: bool
):
    from dg_engine.vllm_plugin import gpu_defaults
    from vllm import platforms

    hopper = SimpleNamespace(
        is_cuda=lambda: True, has_device_capability=lambda wanted: wanted <= (9, 0)
    )
    monkeypatch.setattr(platforms, "_current_platform", hopper)
    version = changed.get("version", "0.26.0")
    monkeypatch.setattr(gpu_defaults, "installed_version", lambda: version)
    config = SimpleNamespace(
        additional_config=changed.get("additional", {}),
        kernel_config=SimpleNamespace(moe_backend=changed.get("moe_backend", "triton")),
        parallel_config=SimpleNamespace(
            world_size=changed.get("world_size", 1), enable_expert_parallel=False
        ),
        lora_config=changed.get("lora"),
    )
    assert gpu_defaults.fuses_layers(config) == fuses


@pytest.mark.parametrize(
    ("backend", "mode", "transfer", "joins"),
    [
        ("CUSTOM", "FULL", None, True),
        ("CUSTOM", "NONE", None, True),
        ("CUSTOM", "PIECEWISE", None, False),
        ("CUSTOM", "FULL_AND_PIECEWISE", None, False),
        ("FLASH_ATTN", "FULL", None, False),
        ("CUSTOM", "FULL", object(), False),
    ],
)
def test_layers_run_whole_where_our_attention_is_between_them(
    monkeypatch: pytest.MonkeyPatch, backend: str, mode: str, transfer: object, joins: bool
):
    from dg_engine.vllm_plugin import gpu_defaults

    monkeypatch.setattr(gpu_defaults, "fuses_layers", lambda _: True)
    config = SimpleNamespace(
        attention_config=SimpleNamespace(backend=SimpleNamespace(name=backend)),
        compilation_config=SimpleNamespace(cudagraph_mode=SimpleNamespace(name=mode)),
        kv_transfer_config=transfer,
    )
    assert gpu_defaults.joins_layers(config) == joins


@pytest.mark.parametrize(("version", "known"), [("0.26.0+cu130", True), ("0.32.0", False)])
def test_blocks_are_for_the_release_they_were_tried_on(version: str, known: bool):
    assert knows_layers(version) == known


def fp8_layer(hidden: int, inner: int) -> Any:
    """Weights of a block of four experts, of which a row has two."""

    def fp8(*shape: int) -> Tensor:
        return torch.zeros(shape).to(torch.float8_e4m3fn)

    def linear(columns: int, depth: int) -> Any:
        return SimpleNamespace(weight=fp8(columns, depth).t(), weight_scale=torch.ones(columns, 1))

    norm = SimpleNamespace(weight=torch.ones(hidden), variance_epsilon=1e-6)
    experts = SimpleNamespace(
        quant_method=CompressedTensorsW8A8Fp8MoEMethod(False),
        w13_weight=fp8(4, 2 * inner, hidden), w2_weight=fp8(4, hidden, inner),
        w13_weight_scale=torch.ones(4, 2 * inner, 1), w2_weight_scale=torch.ones(4, hidden, 1),
        moe_config=SimpleNamespace(experts_per_token=2),
    )  # fmt: skip
    names = ("", "_1", "_2")
    return SimpleNamespace(
        moe=SimpleNamespace(
            experts=SimpleNamespace(routed_experts=experts), per_expert_scale=torch.ones(4)
        ),
        mlp=SimpleNamespace(
            gate_up_proj=linear(2 * inner, hidden), down_proj=linear(hidden, inner)
        ),
        router=SimpleNamespace(proj=lambda rows: (rows[:, :4], None), scale=norm.weight),
        layer_scalar=torch.ones(1), post_attention_layernorm=norm,
        pre_feedforward_layernorm=norm, pre_feedforward_layernorm_2=norm,
        **{f"post_feedforward_layernorm{name}": norm for name in names},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "inner", "ours"),
    [(32, 16, True), (384, 16, True), (385, 16, False), (4, 16, False), (32, 24, False)],
)
def test_few_rows_are_multiplied_by_our_kernel(
    monkeypatch: pytest.MonkeyPatch, rows: int, inner: int, ours: bool
):
    block = feed_forward.FeedForward(fp8_layer(32, inner))
    asked: list[str] = []
    monkeypatch.setattr(
        gemma4, "gemma4_fused_routing_kernel_triton", lambda logits, *_: (logits, logits)
    )
    monkeypatch.setattr(block, "_few", lambda *_: asked.append("ours"))
    monkeypatch.setattr(block, "_many", lambda *_: asked.append("vLLM's"))
    block._routed(SimpleNamespace(router=torch.zeros(rows, 32)))
    assert asked == ["ours" if ours else "vLLM's"]


@pytest.mark.parametrize(
    ("rows", "takes", "launches"),
    [(16, True, 1), (256, True, 1), (257, True, 3), (15, True, 3), (64, False, 3)],
)
def test_experts_take_one_launch_where_they_can(
    monkeypatch: pytest.MonkeyPatch, rows: int, takes: bool, launches: int
):
    block = feed_forward.FeedForward(fp8_layer(32, 16))
    asked: list[Any] = []

    def feed(*given: Any, **options: Any) -> Tensor:
        asked.append((given, options))
        return torch.zeros(2 * rows, 32)

    def multiply(*given: Any, **_: Any) -> Tensor:
        asked.append(given)
        return given[5]

    ids = torch.tensor([[0, 3]], dtype=torch.int32).expand(rows, 2)
    weights, places = torch.full((rows, 2), 0.5), object()
    experts = feed_forward.routed_experts
    monkeypatch.setattr(experts, "one_launch", lambda *_: takes)
    monkeypatch.setattr(experts, "hopper_experts", SimpleNamespace(feed=feed))
    monkeypatch.setattr(experts, "place", lambda *_: places)
    monkeypatch.setattr(experts, "multiply", multiply)
    monkeypatch.setattr(
        feed_forward, "activate", lambda given: (asked.append(given), (given[:, :16], given))[1]
    )
    entered = SimpleNamespace(
        routed=torch.zeros(rows, 32), routed_scales=torch.ones(rows, 1), total=torch.zeros(rows, 32)
    )
    out = block._few(entered, weights, ids)
    assert out.shape == (rows, 2, 32)
    assert len(asked) == launches
    if launches == 1:
        given, options = asked[0]
        assert given[0] is entered.routed
        assert given[6] is weights
        assert given[7] is places
        assert options == {"block": 32, "dtype": torch.float32}
