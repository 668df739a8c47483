"""What stands between the matrix products of a Gemma 4 feed-forward block, one launch each.

The block has a dense part and routed experts beside each other: both read the sum of the attention
and its residual, each through a norm of its own, and both are added up again through three norms.
A launch here reads a row once and does all that follows before the next product: norms, sums,
activations, and the FP8 of the rows with a scale for each. Rounding to the rows' dtype is where the
model's own operations round. A row is so short that a launch is a chain of latencies: everything is
asked for first, and sums that need not wait for each other share a turn of the warps. What a launch
writes stays in the L2 while the experts' weights pass it, for the launch that reads it and for the
next layer's, which writes there again.
Reference: dg_kernels.reference, by the same names.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dg_kernels.reference import FP8, GREATEST, LEAST_SCALE, Entered, Left, Norms, rounded_root

WARPS = 4
"""Of a row of a few thousand numbers."""


@triton.jit
def _root(row, size: tl.constexpr, epsilon):
    """1 over the root mean square of a row whose padding is 0."""
    return tl.rsqrt(tl.sum(row * row, 0) / size + epsilon)


@triton.jit
def _sums(a, b, c, d):
    return a + c, b + d


@triton.jit
def _greater(a, b, c, d):
    return tl.maximum(a, c), tl.maximum(b, d)


@triton.jit
def _two_roots(first, second, size: tl.constexpr, epsilon):
    """As _root, of two rows at once."""
    one, other = tl.reduce((first * first, second * second), 0, _sums)
    return tl.rsqrt(one / size + epsilon), tl.rsqrt(other / size + epsilon)


@triton.jit
def _shrink(row, to, scale_to, column, inside, found, greatest, least):
    """Write a row in the dtype of `to`, and its scale; `found` is its greatest number's size."""
    scale = tl.maximum(found / greatest, least)
    shrunk = tl.minimum(tl.maximum(row / scale, -greatest), greatest)
    rows = shrunk.to(to.dtype.element_ty)
    tl.store(to + column, rows, mask=inside, eviction_policy="evict_last")
    tl.store(scale_to, scale)


@triton.jit
def _quantise(row, to, scale_to, column, inside, greatest, least):
    """Write a row in the dtype of `to` and its scale; `greatest` is what that dtype holds."""
    found = tl.max(tl.abs(row), 0)
    _shrink(row, to, scale_to, column, inside, found, greatest, least)


@triton.jit
def _enter_kernel(
    attended, residual, attended_weight, dense_weight, routed_weight, router_weight,
    total, dense, dense_scales, routed, routed_scales, router, epsilon, root, greatest, least,
    SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row_at = tl.program_id(0)
    at = row_at.to(tl.int64) * SIZE
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    kept = total.dtype.element_ty
    x = tl.load(attended + at + column, mask=inside, other=0.0).to(tl.float32)
    behind = tl.load(residual + at + column, mask=inside, other=0.0)
    attended_by = tl.load(attended_weight + column, mask=inside, other=0.0)
    router_by = tl.load(router_weight + column, mask=inside, other=0.0)
    dense_by = tl.load(dense_weight + column, mask=inside, other=0.0)
    routed_by = tl.load(routed_weight + column, mask=inside, other=0.0)
    x = (x * _root(x, SIZE, epsilon)).to(kept).to(tl.float32)
    x = (x * attended_by.to(tl.float32)).to(kept).to(tl.float32)
    x = (x + behind.to(tl.float32)).to(kept)
    tl.store(total + at + column, x, mask=inside, eviction_policy="evict_last")
    x = x.to(tl.float32)
    x = (x * _root(x, SIZE, epsilon)).to(kept).to(tl.float32)
    asked = ((x * root).to(kept).to(tl.float32) * router_by.to(tl.float32)).to(kept)
    tl.store(router + at + column, asked, mask=inside, eviction_policy="evict_last")
    first = (x * dense_by.to(tl.float32)).to(kept).to(tl.float32)
    second = (x * routed_by.to(tl.float32)).to(kept).to(tl.float32)
    one, other = tl.reduce((tl.abs(first), tl.abs(second)), 0, _greater)
    _shrink(first, dense + at, dense_scales + row_at, column, inside, one, greatest, least)
    _shrink(second, routed + at, routed_scales + row_at, column, inside, other, greatest, least)


@triton.jit
def _activate_kernel(
    gate_up, active, scales, greatest, least, SIZE: tl.constexpr, BLOCK: tl.constexpr
):
    at = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    kept = gate_up.dtype.element_ty
    gate = tl.load(gate_up + at * 2 * SIZE + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + at * 2 * SIZE + SIZE + column, mask=inside, other=0.0).to(tl.float32)
    # gelu by tanh; 1 + tanh(y) is 2 / (1 + exp(-2 y)).
    inner = 1.5957691216057308 * (gate + 0.044715 * gate * gate * gate)
    row = (gate / (1.0 + tl.exp(-inner)) * up).to(kept).to(tl.float32)
    _quantise(row, active + at * SIZE, scales + at, column, inside, greatest, least)


@triton.jit
def _leave_kernel(
    dense, routed, total, dense_weight, routed_weight, out_weight, scalar, following,
    out, rows, scales, epsilon, greatest, least, CHOSEN: tl.constexpr, FOLLOWED: tl.constexpr,
    SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row_at = tl.program_id(0)
    at = row_at.to(tl.int64) * SIZE
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    kept = out.dtype.element_ty
    mixed = tl.zeros([BLOCK], tl.float32)
    for number in tl.static_range(CHOSEN):
        expert = routed + at * CHOSEN + number * SIZE + column
        mixed += tl.load(expert, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(dense + at + column, mask=inside, other=0.0).to(tl.float32)
    behind = tl.load(total + at + column, mask=inside, other=0.0)
    routed_by = tl.load(routed_weight + column, mask=inside, other=0.0)
    dense_by = tl.load(dense_weight + column, mask=inside, other=0.0)
    out_by = tl.load(out_weight + column, mask=inside, other=0.0)
    factor = tl.load(scalar)
    if FOLLOWED:
        following_by = tl.load(following + column, mask=inside, other=0.0)
    mixed = mixed.to(kept).to(tl.float32)
    mixed_root, root = _two_roots(mixed, x, SIZE, epsilon)
    mixed = (mixed * mixed_root).to(kept).to(tl.float32)
    mixed = (mixed * routed_by.to(tl.float32)).to(kept).to(tl.float32)
    x = (x * root).to(kept).to(tl.float32)
    x = (x * dense_by.to(tl.float32)).to(kept).to(tl.float32)
    x = (x + mixed).to(kept).to(tl.float32)
    x = (x * _root(x, SIZE, epsilon)).to(kept).to(tl.float32)
    x = (x * out_by.to(tl.float32)).to(kept).to(tl.float32)
    x = (x + behind.to(tl.float32)).to(kept)
    x = (x.to(tl.float32) * factor.to(tl.float32)).to(kept)
    tl.store(out + at + column, x, mask=inside, eviction_policy="evict_last")
    if FOLLOWED:
        x = x.to(tl.float32)
        x = (x * _root(x, SIZE, epsilon)).to(kept).to(tl.float32)
        x = (x * following_by.to(tl.float32)).to(kept).to(tl.float32)
        _quantise(x, rows + at, scales + row_at, column, inside, greatest, least)


@triton.jit
def _quantise_kernel(
    given, weight, rows, scales, epsilon, greatest, least, NORMED: tl.constexpr,
    SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * SIZE
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    x = tl.load(given + at + column, mask=inside, other=0.0)
    kept = x.dtype
    x = x.to(tl.float32)
    if NORMED:
        factor = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        x = (x * _root(x, SIZE, epsilon)).to(kept).to(tl.float32)
        x = (x * factor).to(kept).to(tl.float32)
    row_at = tl.program_id(0)
    _quantise(x, rows + at, scales + row_at, column, inside, greatest, least)


def enter(attended: Tensor, residual: Tensor, norms: Norms, dtype: torch.dtype = FP8) -> Entered:
    """From the attention's output to what the dense part, the experts and the router read.

    Args:
        attended: output of the attention [rows, hidden], contiguous.
        residual: what it is added to, likewise.
        norms: weights of the block.
        dtype: of the rows that are multiplied, float8_e4m3fn; any other is for tests.

    Raises ValueError for rows that do not fit.
    """
    rows, size = _rows_of(attended, residual)
    dense, routed = torch.empty((2, rows, size), dtype=dtype, device=attended.device)
    scales = torch.empty((2, rows, 1), dtype=torch.float32, device=attended.device)
    total, router = torch.empty_like(residual), torch.empty_like(residual)
    if rows:
        _enter_kernel[(rows,)](
            attended, residual, norms.attended, norms.dense_in, norms.routed_in, norms.router,
            total, dense, scales[0], routed, scales[1], router, norms.epsilon,
            rounded_root(size, residual.dtype), GREATEST, LEAST_SCALE, SIZE=size,
            BLOCK=triton.next_power_of_2(size), num_warps=WARPS,
        )  # fmt: skip
    return Entered(total, dense, scales[0], routed, scales[1], router)


def activate(gate_up: Tensor, dtype: torch.dtype = FP8) -> tuple[Tensor, Tensor]:
    """Gated GELU of [rows, 2 inner], gates first, as rows of `dtype` and their scales [rows, 1]."""
    rows, size = len(gate_up), gate_up.shape[1] // 2
    if not gate_up.is_contiguous():
        raise ValueError("Gates must be contiguous.")
    active = torch.empty(rows, size, dtype=dtype, device=gate_up.device)
    scales = torch.empty(rows, 1, dtype=torch.float32, device=gate_up.device)
    if rows:
        _activate_kernel[(rows,)](
            gate_up, active, scales, GREATEST, LEAST_SCALE, SIZE=size,
            BLOCK=triton.next_power_of_2(size), num_warps=4 if size <= 1024 else 8,
        )  # fmt: skip
    return active, scales


def leave(dense: Tensor, routed: Tensor, total: Tensor, norms: Norms, scalar: Tensor) -> Tensor:
    """The block's output [rows, hidden].

    Args:
        dense: output of the dense part [rows, hidden].
        routed: weighted output of each chosen expert [rows, chosen, hidden], contiguous.
        total: Entered.total.
        norms: weights of the block.
        scalar: what the layer's output is multiplied by, one number.

    Raises ValueError for rows that do not fit.
    """
    return _left(dense, routed, total, norms, scalar, None, FP8).out


def leave_for(
    dense: Tensor,
    routed: Tensor,
    total: Tensor,
    norms: Norms,
    scalar: Tensor,
    following: Tensor,
    dtype: torch.dtype = FP8,
) -> Left:
    """As `leave`, and what the next layer's first product reads.

    Args:
        following: weight of the next layer's norm [hidden].
        dtype: of the rows that are multiplied.
    """
    return _left(dense, routed, total, norms, scalar, following, dtype)


def _left(
    dense: Tensor, routed: Tensor, total: Tensor, norms: Norms, scalar: Tensor,
    following: Tensor | None, dtype: torch.dtype,
) -> Left:  # fmt: skip
    rows, size = _rows_of(dense, total)
    if not routed.is_contiguous() or routed.shape != (rows, routed.shape[1], size):
        raise ValueError("Give the experts' rows as [rows, chosen, hidden], contiguous.")
    out = torch.empty_like(total)
    kept = rows if following is not None else 0
    multiplied = torch.empty(kept, size, dtype=dtype, device=total.device)
    scales = torch.empty(kept, 1, dtype=torch.float32, device=total.device)
    if rows:
        _leave_kernel[(rows,)](
            dense, routed, total, norms.dense_out, norms.routed_out, norms.out, scalar, following,
            out, multiplied, scales, norms.epsilon, GREATEST, LEAST_SCALE,
            CHOSEN=routed.shape[1], FOLLOWED=following is not None, SIZE=size,
            BLOCK=triton.next_power_of_2(size), num_warps=WARPS,
        )  # fmt: skip
    return Left(out, multiplied, scales)


def quantise(
    given: Tensor,
    weight: Tensor | None = None,
    epsilon: float = 0.0,
    dtype: torch.dtype = FP8,
) -> tuple[Tensor, Tensor]:
    """Rows [rows, size], contiguous, in `dtype` and their scales [rows, 1].

    With a weight [size] they go through its norm before.
    """
    if not given.is_contiguous():
        raise ValueError("Rows must be contiguous.")
    rows, size = given.shape
    multiplied = torch.empty(rows, size, dtype=dtype, device=given.device)
    scales = torch.empty(rows, 1, dtype=torch.float32, device=given.device)
    if rows:
        _quantise_kernel[(rows,)](
            given, weight, multiplied, scales, epsilon, GREATEST, LEAST_SCALE,
            NORMED=weight is not None, SIZE=size, BLOCK=triton.next_power_of_2(size),
            num_warps=WARPS,
        )  # fmt: skip
    return multiplied, scales


def _rows_of(first: Tensor, second: Tensor) -> tuple[int, int]:
    if first.shape != second.shape or not (first.is_contiguous() and second.is_contiguous()):
        raise ValueError("Give two contiguous [rows, hidden] of one shape.")
    return first.shape[0], first.shape[1]
