"""The last product of a forward in FP8: half the bytes of the largest matrix that a step reads.

Weights are scaled by token of the vocabulary, hidden states by row, as in FP8-dynamic checkpoints,
which leave this matrix alone. The embedding that it is tied to stays as it is.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import torch
from torch import Tensor

GREATEST = torch.finfo(torch.float8_e4m3fn).max
ROWS_AT_ONCE = 16384
"""Tokens of the vocabulary that are scaled together."""


class Fp8Head:
    """Logits from a matrix of FP8, on one GPU."""

    def __init__(self, weight: Tensor) -> None:
        """Copy a head's weight, float [vocab, hidden]."""
        scaled = [scaled_rows(part) for part in weight.split(ROWS_AT_ONCE)]
        self._weight = torch.cat([part for part, _ in scaled])
        self._scales = torch.cat([scales for _, scales in scaled])

    def __call__(self, hidden: Tensor) -> Tensor:
        """[rows, hidden] -> [rows, vocab] in the dtype of `hidden`."""
        from vllm import _custom_ops as ops

        rows, scales = ops.scaled_fp8_quant(hidden, use_per_token_if_dynamic=True)
        return ops.cutlass_scaled_mm(
            rows, self._weight.t(), scale_a=scales, scale_b=self._scales, out_dtype=hidden.dtype
        )


def scaled_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """FP8 of the same shape and the factor of each row, float32 [rows, 1]; a row of zeros stays."""
    weight = weight.float()
    scales = weight.abs().amax(1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
    scales = scales / GREATEST
    return (weight / scales).clamp(-GREATEST, GREATEST).to(torch.float8_e4m3fn), scales
