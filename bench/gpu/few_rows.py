"""The experts' products for few rows an expert: tilings, and whole blocks by them.

    PYTHONPATH=engine:server:kernels:. python -m bench.gpu.few_rows --out FILE [--workers 12]

Needs vLLM and a GPU. Random weights of the 26B-A4B model in FP8, three layers one after another,
in a CUDA graph. For each number of rows every tiling of `dg_kernels.experts.multiply` is timed for
both products beside vLLM's kernel with the tilings that the plugin gives it; then whole
feed-forward blocks as the plugin runs them, by our products in one launch and apart, and by vLLM's.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from dg_kernels import experts as routed
from dg_kernels.experts import ProductTiling
from torch import Tensor

from bench.gpu import moe
from bench.gpu.compiling import in_processes
from bench.gpu.kernels import SHARED_BYTES, measure_ceilings, median_us
from bench.gpu.turn import held

ROWS = (32, 64, 128, 256, 512)
TUNED_ROWS = (32, 256)
BLOCKS = (16, 32)
DENSE = 2112
CHIP = 132
PRODUCTS = ("in", "out")

Item = tuple[str, int, ProductTiling]


def tilings() -> list[ProductTiling]:
    """What may win and fits the shared memory."""
    found = []
    for columns, depth, warps, stages, programs in itertools.product(
        (64, 128), (128, 256), (4, 8), (2, 3, 4), (0, *(n * CHIP for n in (2, 3, 4, 5, 6)))
    ):
        if (warps == 8 and columns == 64) or (depth == 256 and stages == 2):
            continue
        if stages * depth * (columns + 32) <= SHARED_BYTES // 2:
            found.append(ProductTiling(columns, depth, warps, stages, programs))
    return found


class Products:
    """Both products of one batch over one layer."""

    def __init__(self, layer: moe.Layer, tokens: moe.Tokens) -> None:
        torch.manual_seed(1)
        rows, chosen = tokens.experts.shape
        self.layer, self.ids = layer, tokens.experts
        self.weights = tokens.weights.float()
        self.given = {
            "in": _fp8(rows, moe.HIDDEN), "out": _fp8(rows * chosen, moe.INNER),
        }  # fmt: skip
        self.experts = {"in": layer.w13, "out": layer.w2}
        self.scales = {"in": layer.w13_scale, "out": layer.w2_scale}
        self.made = {
            name: torch.empty(
                rows * chosen, self.experts[name].shape[1], device="cuda", dtype=torch.bfloat16
            )
            for name in PRODUCTS
        }
        self.places = {block: routed.place(self.ids, moe.EXPERTS, block) for block in BLOCKS}

    def ours(self, name: str, block: int, tiling: ProductTiling | None) -> Tensor:
        """One product by our kernel."""
        return routed.multiply(
            *self.given[name], self.experts[name], self.scales[name], self.places[block],
            self.made[name], weights=self.weights if name == "out" else None,
            copies=moe.CHOSEN if name == "in" else 1, block=block, tiling=tiling,
        )  # fmt: skip

    def theirs(self, name: str) -> Tensor:
        """One product by vLLM's kernel."""
        import triton.language as tl
        from vllm.model_executor.layers.fused_moe import fused_moe

        rows, chosen = self.ids.shape
        config = fused_moe.try_get_optimal_moe_config(
            self.layer.w13.size(), self.layer.w2.size(), chosen,
            fused_moe._get_config_dtype_str(torch.bfloat16, use_fp8_w8a8=True), rows,
        )  # fmt: skip
        if not hasattr(self, "aligned"):
            self.aligned = fused_moe._prepare_expert_assignment(
                self.ids, config, rows, chosen, moe.EXPERTS, None, ignore_invalid_experts=True
            )
        given, scales = self.given[name]
        fused_moe.dispatch_fused_moe_kernel(
            given, self.experts[name], self.made[name].view(rows, chosen, -1), scales,
            self.scales[name], None, self.weights, *self.aligned, name == "out",
            chosen if name == "in" else 1, config, compute_type=tl.bfloat16, use_fp8_w8a8=True,
            use_int8_w8a8=False, use_int8_w8a16=False, use_int4_w4a16=False,
            per_channel_quant=True,
        )  # fmt: skip
        return self.made[name]


def _fp8(rows: int, depth: int) -> tuple[Tensor, Tensor]:
    given = torch.randn(rows, depth, device="cuda").to(torch.float8_e4m3fn)
    return given, torch.full((rows, 1), 0.02, device="cuda")


def compile_tilings(mine: list[Item]) -> None:
    """Run each once, so that its code lies in Triton's cache."""
    products = Products(moe.random_layer(), moe.random_tokens(32))
    for name, block, tiling in mine:
        try:
            products.ours(name, block, tiling)
        except Exception as error:  # what the compiler refuses is refused again when it is timed
            print(name, block, tiling, type(error).__name__, str(error)[:200], flush=True)
    torch.cuda.synchronize()


def tune(count: int, layers: list[moe.Layer], every: list[ProductTiling]) -> dict[str, Any]:
    """Microseconds of each tiling, vLLM's beside it, and how far the best is off the exact sums."""
    tokens = moe.random_tokens(count)
    batches = [Products(layer, tokens) for layer in layers]
    found: dict[str, Any] = {"rows": count, "experts_touched": tokens.touched}
    for name in PRODUCTS:
        found[name] = {
            "vllm_us": median_us(lambda n=name: [one.theirs(n) for one in batches]) / len(batches)
        }
        expected = batches[0].theirs(name).float()
        for block in BLOCKS:
            timed = []
            for tiling in every:
                try:
                    us = median_us(
                        lambda n=name, b=block, t=tiling: [one.ours(n, b, t) for one in batches]
                    ) / len(batches)  # fmt: skip
                except Exception as error:  # a tiling that does not fit
                    print(name, block, tiling, type(error).__name__, flush=True)
                    continue
                timed.append({"tiling": tiling._asdict(), "us": us})
            timed.sort(key=lambda one: one["us"])
            best = ProductTiling(**timed[0]["tiling"])
            made = batches[0].ours(name, block, best).float()
            error = float((made - expected).norm() / expected.norm())
            found[name][str(block)] = {"best": timed[:5], "worst": timed[-1], "error": error}
    return found


class CompressedTensorsW8A8Fp8MoEMethod:
    """By its name, as the plugin's block knows it."""

    static_input_scales = False


class _Gate(NamedTuple):
    """A router's product."""

    weight: Tensor

    def __call__(self, rows: Tensor) -> tuple[Tensor, None]:
        return torch.mm(rows, self.weight.t(), out_dtype=torch.float32), None


def block_of(layer: moe.Layer) -> Any:
    """A feed-forward block of the plugin over random weights."""
    from dg_engine.vllm_plugin.feed_forward import FeedForward

    def norm() -> Any:
        return SimpleNamespace(
            weight=torch.ones(moe.HIDDEN, device="cuda", dtype=torch.bfloat16),
            variance_epsilon=1e-6,
        )

    def linear(columns: int, depth: int) -> Any:
        weight = torch.randn(columns, depth, device="cuda", dtype=torch.bfloat16)
        scale = torch.full((columns, 1), 0.02, device="cuda")
        return SimpleNamespace(weight=weight.to(torch.float8_e4m3fn).t(), weight_scale=scale)

    turn = torch.randn(moe.EXPERTS, moe.HIDDEN, device="cuda", dtype=torch.bfloat16)
    experts = SimpleNamespace(
        quant_method=CompressedTensorsW8A8Fp8MoEMethod(),
        w13_weight=layer.w13, w2_weight=layer.w2, w13_weight_scale=layer.w13_scale,
        w2_weight_scale=layer.w2_scale, moe_config=SimpleNamespace(experts_per_token=moe.CHOSEN),
    )  # fmt: skip
    return FeedForward(
        SimpleNamespace(
            moe=SimpleNamespace(
                experts=SimpleNamespace(routed_experts=experts),
                per_expert_scale=torch.ones(moe.EXPERTS, device="cuda"),
            ),
            mlp=SimpleNamespace(
                gate_up_proj=linear(2 * DENSE, moe.HIDDEN), down_proj=linear(moe.HIDDEN, DENSE)
            ),
            router=SimpleNamespace(proj=_Gate(turn), scale=norm().weight),
            layer_scalar=torch.ones(1, device="cuda", dtype=torch.bfloat16),
            post_attention_layernorm=norm(), pre_feedforward_layernorm=norm(),
            pre_feedforward_layernorm_2=norm(), post_feedforward_layernorm_1=norm(),
            post_feedforward_layernorm_2=norm(), post_feedforward_layernorm=norm(),
        )
    )  # fmt: skip


@contextmanager
def changed(module: Any, **values: Any) -> Iterator[None]:
    """Names of a module that mean something else for a while."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def whole_blocks(count: int, blocks: list[Any]) -> dict[str, float]:
    """Microseconds of a block by our products and by vLLM's."""
    from dg_engine.vllm_plugin import feed_forward

    given = torch.randn(2, count, moe.HIDDEN, device="cuda", dtype=torch.bfloat16)
    found: dict[str, float] = {}

    def timed(name: str) -> None:
        found[name] = median_us(lambda: [block(*given) for block in blocks]) / len(blocks)

    timed("ours")
    with changed(feed_forward, FED_ROWS=range(0)):
        timed("ours, each launch apart")
    with changed(feed_forward, FEW_ROWS=range(0)):
        timed("vLLM's products")
    timed("ours again")
    return found


def main() -> None:
    """Compile, tune, then time blocks by what won."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--no-tuning", action="store_true")
    options = parser.parse_args()
    every = tilings()
    if not options.no_tuning:
        items = [(n, b, t) for n in PRODUCTS for b in BLOCKS for t in every]
        in_processes(compile_tilings, items, options.workers)
    with held():
        measure(options.out, [] if options.no_tuning else every)


def measure(out: Path, every: list[ProductTiling]) -> None:
    """Time everything, and write as it comes."""
    moe.begin()
    from dg_engine.vllm_plugin.gpu_defaults import offer_tilings

    offer_tilings()
    found: dict[str, Any] = {"ceilings": measure_ceilings()._asdict(), "products": [], "blocks": {}}
    layers = [moe.random_layer() for _ in range(moe.LAYERS)]
    tuned: dict[int, tuple[int, dict[str, ProductTiling]]] = {}
    for count in TUNED_ROWS if every else ():
        row = tune(count, layers, every)
        found["products"].append(row)
        print(json.dumps(row), flush=True)
        cost = {b: sum(row[n][str(b)]["best"][0]["us"] for n in PRODUCTS) for b in BLOCKS}
        block = min(cost, key=lambda b: cost[b])
        tuned[count] = (
            block,
            {
                name: ProductTiling(**row[name][str(block)]["best"][0]["tiling"])
                for name in PRODUCTS
            },
        )
        out.write_text(json.dumps(found, indent=1) + "\n")
    blocks = [block_of(layer) for layer in layers]
    for count in ROWS:
        found["blocks"][str(count)] = row = {"chosen": whole_blocks(count, blocks)}
        if tuned:
            block, cuts = tuned[32 if count <= 64 else 256]
            with changed(
                routed,
                choose_block=lambda *_, b=block: b,
                choose_product=lambda _, depth, __, c=cuts: c[
                    "in" if depth == moe.HIDDEN else "out"
                ],
            ):
                row["tuned"] = whole_blocks(count, blocks)
        print(count, json.dumps(row), flush=True)
        out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
