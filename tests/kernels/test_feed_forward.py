"""What stands between the products of a feed-forward block computes what its operations would."""

from __future__ import annotations

import pytest
import torch
from dg_kernels import reference
from dg_kernels.reference import Norms

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels import feed_forward

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3}
"""Relative to the greatest number of a tensor."""
HIDDEN, INNER, CHOSEN = 96, 40, 3


def norms_of(chance: torch.Generator, dtype: torch.dtype, device: torch.device) -> Norms:
    """Random weights around 1."""
    weights = (1 + 0.2 * torch.randn(7, HIDDEN, generator=chance)).to(dtype).to(device)
    return Norms(*weights, epsilon=1e-6)


def rows_of(chance: torch.Generator, *shape: int, dtype: torch.dtype, device: torch.device):
    """Random rows, of which the second is zeros."""
    made = torch.randn(shape, generator=chance) * 3
    made[1] = 0
    return made.to(dtype).to(device)


def expect_near(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """No number differs by more than a share of the greatest."""
    assert found.isfinite().all()
    bound = tolerance * max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(found.float(), expected.float(), rtol=0, atol=bound)


def test_entering(dtype: torch.dtype, device: torch.device):
    chance = torch.Generator().manual_seed(1)
    norms = norms_of(chance, dtype, device)
    attended, residual = (
        rows_of(chance, 5, HIDDEN, dtype=dtype, device=device) for _ in range(2)
    )  # fmt: skip
    found = feed_forward.enter(attended, residual, norms, dtype=dtype)
    expected = reference.enter(attended, residual, norms, dtype=dtype)
    for one, other in zip(found, expected, strict=True):
        expect_near(one, other, TOLERANCE[dtype])
    assert float(found.dense.abs().max()) == pytest.approx(reference.GREATEST, rel=1e-3)


def test_activating(dtype: torch.dtype, device: torch.device):
    chance = torch.Generator().manual_seed(2)
    gate_up = rows_of(chance, 6, 2 * INNER, dtype=dtype, device=device)
    found = feed_forward.activate(gate_up, dtype=dtype)
    for one, other in zip(found, reference.activate(gate_up, dtype=dtype), strict=True):
        expect_near(one, other, TOLERANCE[dtype])


def test_leaving(dtype: torch.dtype, device: torch.device):
    chance = torch.Generator().manual_seed(3)
    norms = norms_of(chance, dtype, device)
    dense, total = (rows_of(chance, 5, HIDDEN, dtype=dtype, device=device) for _ in range(2))
    routed = rows_of(chance, 5, CHOSEN, HIDDEN, dtype=dtype, device=device)
    scalar = torch.tensor([0.7], dtype=dtype, device=device)
    found = feed_forward.leave(dense, routed, total, norms, scalar)
    expect_near(found, reference.leave(dense, routed, total, norms, scalar), TOLERANCE[dtype])


def test_leaving_for_the_next_layer(dtype: torch.dtype, device: torch.device):
    chance = torch.Generator().manual_seed(5)
    norms = norms_of(chance, dtype, device)
    dense, total = (rows_of(chance, 5, HIDDEN, dtype=dtype, device=device) for _ in range(2))
    routed = rows_of(chance, 5, CHOSEN, HIDDEN, dtype=dtype, device=device)
    scalar = torch.tensor([0.7], dtype=dtype, device=device)
    given = (dense, routed, total, norms, scalar, norms.router, dtype)
    found = feed_forward.leave_for(*given)
    expected = reference.leave_for(*given)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        expect_near(one, other, 2 * TOLERANCE[dtype])
    assert torch.equal(found.out, feed_forward.leave(dense, routed, total, norms, scalar))


@pytest.mark.parametrize("normed", [False, True])
def test_quantising(normed: bool, dtype: torch.dtype, device: torch.device):
    chance = torch.Generator().manual_seed(6)
    norms = norms_of(chance, dtype, device)
    rows = rows_of(chance, 5, HIDDEN, dtype=dtype, device=device)
    weight = norms.out if normed else None
    found = feed_forward.quantise(rows, weight, norms.epsilon, dtype)
    wide = reference.normed(rows, weight, norms.epsilon) if normed else rows
    for one, other in zip(found, reference.quantised(wide, dtype), strict=True):
        expect_near(one, other, TOLERANCE[dtype])


def test_reference_is_the_sequence_of_norms():
    """As Gemma 4's decoder layer has it, written once more by its parts."""
    chance, device = torch.Generator().manual_seed(4), torch.device("cpu")
    norms = norms_of(chance, torch.float32, device)
    attended, residual = (torch.randn(4, HIDDEN, generator=chance) for _ in range(2))

    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x, (HIDDEN,), weight, norms.epsilon)

    entered = reference.enter(attended, residual, norms, dtype=torch.float32)
    total = norm(attended, norms.attended) + residual
    torch.testing.assert_close(entered.total, total)
    torch.testing.assert_close(entered.dense * entered.dense_scales, norm(total, norms.dense_in))
    torch.testing.assert_close(entered.routed * entered.routed_scales, norm(total, norms.routed_in))
    torch.testing.assert_close(entered.router, norm(total, norms.router) * HIDDEN**-0.5)


def test_nothing_and_what_does_not_fit(device: torch.device):
    chance = torch.Generator().manual_seed(5)
    norms = norms_of(chance, torch.float32, device)
    none = torch.empty(0, HIDDEN, device=device)
    assert feed_forward.enter(none, none, norms).dense.shape == (0, HIDDEN)
    assert feed_forward.activate(torch.empty(0, 8, device=device))[0].shape == (0, 4)
    wide = torch.zeros(2, 2 * HIDDEN, device=device)[:, ::2]
    with pytest.raises(ValueError, match="contiguous"):
        feed_forward.enter(wide, wide, norms)
    wrong, scalar = torch.empty(2, 3, HIDDEN, device=device), torch.ones(1, device=device)
    with pytest.raises(ValueError, match="chosen"):
        feed_forward.leave(none, wrong, none, norms, scalar)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="Rows of FP8 need a GPU.")
def test_rows_of_fp8_at_the_models_size():
    chance, device, size = torch.Generator().manual_seed(6), torch.device("cuda"), 2816
    weights = (1 + 0.2 * torch.randn(7, size, generator=chance)).bfloat16().to(device)
    norms = Norms(*weights, epsilon=1e-6)
    attended, residual = torch.randn(2, 256, size, generator=chance).bfloat16().to(device)
    found = feed_forward.enter(attended, residual, norms)
    expected = reference.enter(attended, residual, norms)
    for one, other in zip(found, expected, strict=True):
        error = (one.float() - other.float()).norm() / other.float().norm()
        assert float(error) < 0.02
