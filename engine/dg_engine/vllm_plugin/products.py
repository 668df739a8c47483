"""FP8 products of few rows by dg_kernels.scaled_product, in place of vLLM's CUTLASS ones.

What a canvas or a line multiplies is far from filling CUTLASS's tiles, so that most of the chip
waits; see bench/results/gpu.md. Prompts, which have more rows, stay with CUTLASS.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from dg_kernels.scaled_product import scaled_product
from torch import Tensor
from vllm import _custom_ops as vllm_ops
from vllm.model_executor.kernels import linear
from vllm.model_executor.kernels.linear.scaled_mm.cutlass import CutlassFP8ScaledMMLinearKernel
from vllm.platforms import PlatformEnum

from dg_engine.vllm_plugin.tickets import tickets

MOST_ROWS = 512
"""Of a product that is ours; two whole canvases."""


def product(
    rows_of: Tensor, weights: Tensor, row_scales: Tensor, column_scales: Tensor, lane: str
) -> Tensor:
    """bfloat16 [rows, columns] of FP8 rows and weights [columns, depth]; see scaled_product."""
    if len(rows_of) > MOST_ROWS:
        return vllm_ops.cutlass_scaled_mm(
            rows_of, weights.t(), scale_a=row_scales, scale_b=column_scales,
            out_dtype=torch.bfloat16,
        )  # fmt: skip
    return scaled_product(
        rows_of, weights, row_scales, column_scales, tickets=tickets(rows_of.device, lane)
    )


@torch.library.custom_op("dg_lsp::scaled_product", mutates_args=())
def scaled_product_op(
    rows_of: Tensor, weights: Tensor, row_scales: Tensor, column_scales: Tensor
) -> Tensor:
    """`product` as the compiler of a forward sees it."""
    return product(rows_of, weights, row_scales, column_scales, "forward")


@scaled_product_op.register_fake
def _(rows_of: Tensor, weights: Tensor, row_scales: Tensor, column_scales: Tensor) -> Tensor:
    return rows_of.new_empty(len(rows_of), len(weights), dtype=torch.bfloat16)


class CanvasProducts(CutlassFP8ScaledMMLinearKernel):
    """Rows with a scale each, weights with one by column, no padding."""

    @classmethod
    def can_implement(cls, c: Any) -> tuple[bool, str | None]:
        """Whether a layer's scheme is this one."""
        scale = c.activation_quant_key.scale
        fits = (
            not scale.static
            and scale.group_shape.is_per_token()
            and c.weight_quant_key.scale.group_shape.is_per_channel()
            and c.input_dtype == torch.bfloat16
            and all(size % 16 == 0 for size in c.weight_shape)
        )
        return fits, None if fits else "is for rows scaled one by one"

    def apply_scaled_mm(
        self,
        *,
        A: Tensor,
        B: Tensor,
        out_dtype: torch.dtype,
        As: Tensor,
        Bs: Tensor,
        bias: Tensor | None,
        output_shape: list[int],
    ) -> Tensor:
        """[rows, depth] times [depth, columns]."""
        if out_dtype != torch.bfloat16:
            return super().apply_scaled_mm(
                A=A, B=B, out_dtype=out_dtype, As=As, Bs=Bs, bias=bias, output_shape=output_shape
            )
        found = scaled_product_op(A, B.t(), As, Bs)
        return (found if bias is None else found + bias).view(*output_shape)


@contextlib.contextmanager
def preferred() -> Iterator[None]:
    """Have the layers that are made meanwhile multiply with CanvasProducts where they can."""
    known = linear._POSSIBLE_FP8_KERNELS[PlatformEnum.CUDA]
    known.insert(0, CanvasProducts)
    try:
        yield
    finally:
        known.remove(CanvasProducts)
