"""The expert layers of the 26B-A4B model in FP8: vLLM's backends beside each other, and tilings.

    python -m bench.gpu.moe --out FOLDER [--workers 12]

Needs vLLM and a GPU. Random weights and random routing, 8 of 128 experts a token; how many experts
a batch touches is printed beside its times, since their weights are the bytes that must be read.
Every tiling of vLLM's Triton kernel is compiled in many processes and then timed in this one, in a
CUDA graph over layers that do not fit the cache. FOLDER gets `moe.json`, and the file that vLLM
reads the best tilings from (its VLLM_TUNED_CONFIG_FOLDER).
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bench.gpu.compiling import in_processes
from bench.gpu.kernels import SHARED_BYTES, Row, measure_ceilings, median_us, off_by
from bench.gpu.turn import held

EXPERTS, CHOSEN, HIDDEN, INNER = 128, 8, 2816, 704
LAYERS = 3
"""Timed one after another, 2.3 GB of weights."""
TOKENS = (32, 64, 128, 256)
"""A line, two of them, four, and a whole canvas."""
LARGER = (512, 1024, 2048, 4096)
"""Several canvases, and prompts."""
BACKENDS = ("triton", "cutlass", "marlin")

Tiling = dict[str, int]


class Layer(NamedTuple):
    """Weights of one layer, FP8 by channel."""

    w13: torch.Tensor
    w2: torch.Tensor
    w13_scale: torch.Tensor
    w2_scale: torch.Tensor


class Tokens(NamedTuple):
    """What a layer gets."""

    hidden: torch.Tensor
    weights: torch.Tensor
    experts: torch.Tensor

    @property
    def touched(self) -> int:
        """How many experts any token chose."""
        return len(self.experts.unique())


def random_layer() -> Layer:
    """Of the sizes of a trained model."""

    def weights(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16).to(torch.float8_e4m3fn)

    def scales(*shape: int) -> torch.Tensor:
        return torch.full(shape, 0.02, device="cuda")

    return Layer(
        weights(EXPERTS, 2 * INNER, HIDDEN),
        weights(EXPERTS, HIDDEN, INNER),
        scales(EXPERTS, 2 * INNER, 1),
        scales(EXPERTS, HIDDEN, 1),
    )


def random_tokens(count: int) -> Tokens:
    """Of which each goes its own way."""
    torch.manual_seed(count)
    hidden = torch.randn(count, HIDDEN, device="cuda", dtype=torch.bfloat16)
    weights, experts = torch.softmax(torch.randn(count, EXPERTS, device="cuda"), -1).topk(CHOSEN)
    return Tokens(hidden, weights / weights.sum(-1, keepdim=True), experts.to(torch.int32))


def triton_layer(layer: Layer, tokens: Tokens, tiling: Tiling | None) -> torch.Tensor:
    """One layer by vLLM's Triton kernel; None leaves the tiling to vLLM."""
    from vllm.model_executor.layers.fused_moe import override_config
    from vllm.model_executor.layers.fused_moe.activation import MoEActivation
    from vllm.model_executor.layers.fused_moe.config import fp8_w8a8_moe_quant_config
    from vllm.model_executor.layers.fused_moe.fused_moe import fused_experts

    quantised = fp8_w8a8_moe_quant_config(
        layer.w13_scale, layer.w2_scale, per_act_token_quant=True, per_out_ch_quant=True
    )
    with override_config(tiling):
        return fused_experts(
            tokens.hidden, layer.w13, layer.w2, tokens.weights, tokens.experts,
            activation=MoEActivation.GELU_TANH, quant_config=quantised,
        )  # fmt: skip


def backend_layer(name: str, layer: Layer) -> Callable[[Tokens], torch.Tensor]:
    """One layer by a backend as vLLM's model would run it."""
    from types import SimpleNamespace

    from vllm.model_executor.layers.fused_moe.activation import MoEActivation
    from vllm.model_executor.layers.fused_moe.config import (
        FusedMoEConfig,
        FusedMoEParallelConfig,
        RoutingMethodType,
    )
    from vllm.model_executor.layers.fused_moe.oracle import fp8
    from vllm.model_executor.layers.quantization.utils.quant_utils import (
        kFp8DynamicTokenSym,
        kFp8StaticChannelSym,
    )

    config = FusedMoEConfig(
        num_experts=EXPERTS, experts_per_token=CHOSEN, hidden_dim=HIDDEN, intermediate_size=INNER,
        num_local_experts=EXPERTS, num_logical_experts=EXPERTS,
        activation=MoEActivation.GELU_TANH, device="cuda",
        routing_method=RoutingMethodType.Renormalize,
        moe_parallel_config=FusedMoEParallelConfig.make_no_parallel(), in_dtype=torch.bfloat16,
        moe_backend=name,
    )  # fmt: skip
    backend, experts = fp8.select_fp8_moe_backend(
        config, kFp8StaticChannelSym, kFp8DynamicTokenSym, allow_vllm_cutlass=True
    )
    holder: Any = SimpleNamespace(
        num_experts=EXPERTS, local_num_experts=EXPERTS, hidden_size=HIDDEN,
        intermediate_size_per_partition=INNER, weight_block_size=None, orig_dtype=torch.bfloat16,
        w13_weight=layer.w13, w2_weight=layer.w2, activation=MoEActivation.GELU_TANH,
        moe_config=config, params_dtype=torch.bfloat16,
    )  # fmt: skip
    w13, w2, w13_scale, w2_scale = fp8.convert_to_fp8_moe_kernel_format(
        backend, holder, *layer, None, None
    )
    quantised = fp8.make_fp8_moe_quant_config(
        backend, w13_scale, w2_scale, None, None, per_act_token_quant=True, per_out_ch_quant=True
    )
    kernel = fp8.make_fp8_moe_kernel(quantised, config, experts, backend)

    def run(tokens: Tokens) -> torch.Tensor:
        return kernel.apply(
            tokens.hidden, w13, w2, tokens.weights, tokens.experts, MoEActivation.GELU_TANH,
            EXPERTS, None, False,
        )  # fmt: skip

    return run


def tilings(larger: bool) -> list[Tiling]:
    """What may win at few tokens an expert (or at many) and fits the shared memory."""
    found: list[Tiling] = []
    for rows, columns, depth, warps, stages in itertools.product(
        (32, 64, 128) if larger else (16, 32),
        (128, 256) if larger else (64, 128),
        (128,),
        (4, 8),
        (3, 4),
    ):
        if stages * depth * (rows + columns) <= SHARED_BYTES - 1024:
            sizes = {"BLOCK_SIZE_M": rows, "BLOCK_SIZE_N": columns, "BLOCK_SIZE_K": depth}
            fixed = {"GROUP_SIZE_M": 1, "SPLIT_K": 1}
            found.append(sizes | fixed | {"num_warps": warps, "num_stages": stages})
    return found


def begin() -> None:
    """What vLLM's layers want to find."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.v1.worker.workspace import init_workspace_manager

    torch.set_grad_enabled(False)
    set_current_vllm_config(VllmConfig()).__enter__()
    init_workspace_manager(torch.device("cuda"))


def compile_tilings(mine: list[Tiling]) -> None:
    """Run each once, so that its code lies in Triton's cache."""
    begin()
    layer, tokens = random_layer(), random_tokens(32)
    for tiling in mine:
        try:
            triton_layer(layer, tokens, tiling)
        except Exception as error:  # what the compiler refuses is refused again when it is timed
            print(tiling, type(error).__name__, flush=True)
    torch.cuda.synchronize()


def over_layers(run: Callable[[Layer], object], layers: list[Layer]) -> float:
    """Microseconds a layer."""

    def work() -> None:
        for layer in layers:
            run(layer)

    return median_us(work) / len(layers)


def exact(layer: Layer, tokens: Tokens) -> torch.Tensor:
    """The layer in float32, with neither activations nor sums rounded."""
    out = torch.zeros(tokens.hidden.shape, device="cuda")
    for expert in range(EXPERTS):
        at, which = (tokens.experts == expert).nonzero(as_tuple=True)
        if len(at) == 0:
            continue
        w13 = layer.w13[expert].float() * layer.w13_scale[expert]
        w2 = layer.w2[expert].float() * layer.w2_scale[expert]
        gate, up = (tokens.hidden[at].float() @ w13.T).chunk(2, -1)
        inner = torch.nn.functional.gelu(gate, approximate="tanh") * up
        out[at] += (inner @ w2.T) * tokens.weights[at, which, None]
    return out


def main() -> None:
    """Compile, then measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=12)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    in_processes(compile_tilings, [*tilings(False), *tilings(True)], options.workers)
    with held():
        measure(options.out)


def measure(folder: Path) -> None:
    """Time every size, and write."""
    begin()
    from vllm.model_executor.layers.fused_moe.fused_moe import (
        get_config_file_name,
        get_default_config,
    )

    ceilings = measure_ceilings()
    layers = [random_layer() for _ in range(LAYERS)]
    rows: list[Row] = []
    written: dict[str, Tiling] = {}
    for count in (*TOKENS, *LARGER):
        tokens = random_tokens(count)
        moved = tokens.touched * 3 * INNER * HIDDEN
        row: Row = {
            "tokens": count, "experts_touched": tokens.touched,
            "floor_us": ceilings.floor_us(moved), "tilings": [],
        }  # fmt: skip
        truth = exact(layers[0], tokens)
        row["default_us"] = over_layers(lambda x, t=tokens: triton_layer(x, t, None), layers)
        row["default_error"] = off_by(triton_layer(layers[0], tokens, None), truth)
        for tiling in tilings(count in LARGER):
            found: Row = {"tiling": tiling}
            row["tilings"].append(found)
            try:
                found["us"] = over_layers(
                    lambda x, t=tokens, tiling=tiling: triton_layer(x, t, tiling), layers
                )
            except Exception as error:  # a tiling that does not fit
                found["refused"] = type(error).__name__
        timed = [found for found in row["tilings"] if "us" in found]
        best = min(timed, key=lambda found: found["us"])
        row["best"] = best
        row["best_error"] = off_by(triton_layer(layers[0], tokens, best["tiling"]), truth)
        written[str(count)] = best["tiling"]
        for name in BACKENDS:
            try:
                run = [backend_layer(name, layer) for layer in layers]
                row[f"{name}_us"] = (
                    median_us(lambda run=run, t=tokens: [one(t) for one in run]) / LAYERS
                )
                row[f"{name}_error"] = off_by(run[0](tokens), truth)
            except Exception as error:  # a backend that vLLM does not offer here
                row[f"{name}_refused"] = f"{type(error).__name__}: {error}"[:200]
        rows.append(row)
        print({key: value for key, value in row.items() if key != "tilings"}, flush=True)
        (folder / "moe.json").write_text(
            json.dumps({"ceilings": ceilings._asdict(), "rows": rows}, indent=1) + "\n"
        )
    for count in (1, 8):
        written[str(count)] = get_default_config(count, EXPERTS, INNER, HIDDEN, CHOSEN, "fp8_w8a8")
    name = get_config_file_name(EXPERTS, INNER, "fp8_w8a8")
    (folder / name).write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
