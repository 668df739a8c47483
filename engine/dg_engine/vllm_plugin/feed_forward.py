"""Gemma 4's feed-forward block in few launches: the dense part beside the experts' routing.

Upstream runs the dense part, the router and the experts one after another, each between norms and
quantisation of its own. Here one launch makes what all three read, the dense part takes a stream of
its own while the experts are chosen, and one launch adds up what comes of it. The experts' products
are ours where an expert has few rows, on Hopper in one launch with the activation between them, and
vLLM's Triton kernel with our tilings where it has many.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from dg_kernels import experts as routed_experts
from dg_kernels.feed_forward import activate, enter, leave, leave_for
from dg_kernels.reference import FP8, Entered, Left, Norms
from torch import Tensor
from vllm import _custom_ops as vllm_ops
from vllm.model_executor.layers.fused_moe import fused_moe
from vllm.model_executor.models import gemma4

NAME = "dg_feed_forward"
"""Attribute of a decoder layer: the name of its block here, or nothing where upstream's runs."""
WHOLE = "dg_whole_layer"
"""Attribute of a decoder layer: its forward in few launches, where all of it has one."""

FEW_ROWS = range(8, 385)
"""Of a batch whose experts are multiplied by our kernel: where most experts have a block or two."""
FED_ROWS = range(16, 257)
"""Of a batch whose experts take one launch where they can: it was timed for so many rows."""
DESCRIBED_BYTES = 16
"""A tensor descriptor's rows, FP8 here, are multiples of so many."""

_blocks: dict[str, FeedForward] = {}
_side: dict[int, torch.cuda.Stream] = {}


class Unfit(Exception):
    """Why a layer stays as upstream has it."""


class FeedForward:
    """One layer's block, over the weights that vLLM has loaded."""

    def __init__(self, layer: Any) -> None:
        """Raises Unfit for a layer that is another's business."""
        experts = layer.moe.experts.routed_experts
        if type(experts.quant_method).__name__ != "CompressedTensorsW8A8Fp8MoEMethod":
            raise Unfit(f"experts of {type(experts.quant_method).__name__}")
        linears = (layer.mlp.gate_up_proj, layer.mlp.down_proj)
        fixed = (getattr(linear, "input_scale", None) is not None for linear in linears)
        if experts.quant_method.static_input_scales or any(fixed):
            raise Unfit("rows that are scaled by fixed factors")
        self._gate_up, self._gate_up_scales = weights_of(layer.mlp.gate_up_proj)
        self._down, self._down_scales = weights_of(layer.mlp.down_proj)
        self._experts_in, self._experts_out = experts.w13_weight, experts.w2_weight
        self._in_scales, self._out_scales = experts.w13_weight_scale, experts.w2_weight_scale
        if any(w.dtype != FP8 for w in (self._experts_in, self._experts_out)):
            raise Unfit("experts that are not FP8")
        if any(len(scales.shape) != 3 for scales in (self._in_scales, self._out_scales)):
            raise Unfit("experts that are not scaled by channel")
        depths = (self._experts_in.shape[2], self._experts_out.shape[2])
        self._described = all(depth % DESCRIBED_BYTES == 0 for depth in depths)
        self._router, self._expert_scale = layer.router.proj, layer.moe.per_expert_scale
        self._chosen = int(layer.moe.experts.routed_experts.moe_config.experts_per_token)
        self._scalar = layer.layer_scalar
        self._norms = Norms(
            attended=layer.post_attention_layernorm.weight,
            dense_in=layer.pre_feedforward_layernorm.weight,
            routed_in=layer.pre_feedforward_layernorm_2.weight,
            router=layer.router.scale,
            dense_out=layer.post_feedforward_layernorm_1.weight,
            routed_out=layer.post_feedforward_layernorm_2.weight,
            out=layer.post_feedforward_layernorm.weight,
            epsilon=layer.post_attention_layernorm.variance_epsilon,
        )

    def __call__(self, attended: Tensor, residual: Tensor) -> Tensor:
        """The layer's output from its attention's, both bfloat16 [rows, hidden]."""
        dense, routed, total = self._parts(attended, residual)
        return leave(dense, routed, total, self._norms, self._scalar)

    def for_next(self, attended: Tensor, residual: Tensor, following: Tensor) -> Left:
        """As a call, and normed by the weight `following` for the next layer's first product."""
        dense, routed, total = self._parts(attended, residual)
        return leave_for(dense, routed, total, self._norms, self._scalar, following)

    def _parts(self, attended: Tensor, residual: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Output of the dense part, of each chosen expert, and the sum that both read."""
        entered = enter(attended, residual, self._norms)
        main, side = torch.cuda.current_stream(), side_stream(attended.device)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            dense = self._dense(entered)
        routed = self._routed(entered)
        main.wait_stream(side)
        return dense, routed, entered.total

    def _dense(self, entered: Entered) -> Tensor:
        gate_up = vllm_ops.cutlass_scaled_mm(
            entered.dense, self._gate_up, entered.dense_scales, self._gate_up_scales,
            entered.total.dtype,
        )  # fmt: skip
        active, scales = activate(gate_up)
        return vllm_ops.cutlass_scaled_mm(
            active, self._down, scales, self._down_scales, entered.total.dtype
        )

    def _routed(self, entered: Entered) -> Tensor:
        """Weighted outputs of the chosen experts [rows, chosen, hidden]."""
        logits, _ = self._router(entered.router)
        weights, ids = gemma4.gemma4_fused_routing_kernel_triton(
            logits, self._chosen, self._expert_scale
        )
        if len(logits) in FEW_ROWS and self._described:
            return self._few(entered, weights, ids)
        return self._many(entered, weights, ids)

    def _few(self, entered: Entered, weights: Tensor, ids: Tensor) -> Tensor:
        """By our kernels."""
        rows, (experts, inner, hidden) = len(ids), self._experts_in.shape
        block = routed_experts.choose_block(ids.numel(), experts)
        places = routed_experts.place(ids, experts, block)
        of = self._experts_in, self._experts_out
        if rows in FED_ROWS and routed_experts.one_launch(*of, block):
            return routed_experts.hopper_experts.feed(
                entered.routed, entered.routed_scales, self._experts_in, self._in_scales,
                self._experts_out, self._out_scales, weights, places, block=block,
                dtype=entered.total.dtype,
            ).view(rows, self._chosen, hidden)  # fmt: skip
        gate_up = torch.empty(ids.numel(), inner, dtype=entered.total.dtype, device=ids.device)
        routed_experts.multiply(
            entered.routed, entered.routed_scales, self._experts_in, self._in_scales, places,
            gate_up, copies=self._chosen, block=block,
        )  # fmt: skip
        active, scales = activate(gate_up)
        out = torch.empty(ids.numel(), hidden, dtype=gate_up.dtype, device=ids.device)
        routed_experts.multiply(
            active, scales, self._experts_out, self._out_scales, places, out,
            weights=weights, block=block,
        )  # fmt: skip
        return out.view(rows, self._chosen, hidden)

    def _many(self, entered: Entered, weights: Tensor, ids: Tensor) -> Tensor:
        """By vLLM's kernel."""
        rows, (experts, inner, hidden) = len(ids), self._experts_in.shape
        config = fused_moe.try_get_optimal_moe_config(
            self._experts_in.size(), self._experts_out.size(), self._chosen,
            fused_moe._get_config_dtype_str(entered.total.dtype, use_fp8_w8a8=True), rows,
        )  # fmt: skip
        places = fused_moe._prepare_expert_assignment(
            ids, config, rows, self._chosen, experts, None, ignore_invalid_experts=True
        )
        to = {"dtype": entered.total.dtype, "device": entered.total.device}
        gate_up = torch.empty(rows, self._chosen, inner, **to)
        self._multiply(
            entered.routed, self._experts_in, gate_up, entered.routed_scales, self._in_scales,
            weights, places, False, self._chosen, config,
        )  # fmt: skip
        active, scales = activate(gate_up.view(-1, inner))
        out = torch.empty(rows, self._chosen, hidden, **to)
        self._multiply(
            active, self._experts_out, out, scales, self._out_scales,
            weights, places, True, 1, config,
        )  # fmt: skip
        return out

    @staticmethod
    def _multiply(
        rows_of: Tensor, experts: Tensor, out: Tensor, row_scales: Tensor, expert_scales: Tensor,
        weights: Tensor, places: Any, weighted: bool, copies: int, config: Any,
    ) -> None:  # fmt: skip
        fused_moe.dispatch_fused_moe_kernel(
            rows_of, experts, out, row_scales, expert_scales, None, weights, *places,
            weighted, copies, config, compute_type=tl.bfloat16, use_fp8_w8a8=True,
            use_int8_w8a8=False, use_int8_w8a16=False, use_int4_w4a16=False,
            per_channel_quant=True,
        )  # fmt: skip


def weights_of(linear: Any) -> tuple[Tensor, Tensor]:
    """FP8 [depth, columns], contiguous along the depth, and a scale for each column."""
    weight, scales = linear.weight, getattr(linear, "weight_scale", None)
    if weight.dtype != FP8 or scales is None or weight.stride(0) != 1:
        raise Unfit("dense weights that are not FP8, turned for a product")
    if scales.numel() != weight.shape[1]:
        raise Unfit("dense weights that are not scaled by channel")
    return weight, scales


def side_stream(device: torch.device) -> torch.cuda.Stream:
    """Where a device runs dense parts; made before a forward is captured."""
    key = device.index or 0
    if key not in _side:
        _side[key] = torch.cuda.Stream(device)
    return _side[key]


def keep_block(name: str, layer: Any) -> FeedForward:
    """The block of a layer, for `feed_forward_op` by this name; raises Unfit."""
    block = _blocks[name] = FeedForward(layer)
    return block


@torch.library.custom_op("dg_lsp::feed_forward", mutates_args=())
def feed_forward_op(attended: Tensor, residual: Tensor, name: str) -> Tensor:
    """A block by name, as the compiler of a forward sees it."""
    return _blocks[name](attended, residual)


@feed_forward_op.register_fake
def _(attended: Tensor, residual: Tensor, name: str) -> Tensor:
    return torch.empty_like(residual)
