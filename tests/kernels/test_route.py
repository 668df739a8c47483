"""Rows are sent to the experts that their router likes best."""

from __future__ import annotations

import pytest
import torch
from dg_kernels import reference

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels.route import route


@pytest.mark.parametrize(
    ("count", "depth", "experts", "chosen"), [(1, 96, 6, 2), (19, 600, 24, 3), (33, 256, 8, 8)]
)
def test_choices_are_the_reference_s(
    count: int, depth: int, experts: int, chosen: int, dtype: torch.dtype, device: torch.device
):
    chance = torch.Generator().manual_seed(count)
    rows = torch.randn(count, depth, generator=chance).to(dtype).to(device)
    gate = torch.randn(experts, depth, generator=chance).div(depth**0.5).to(dtype).to(device)
    scale = (1 + torch.rand(experts, generator=chance)).to(device)
    weights, ids = route(rows, gate, chosen, scale)
    expected, order = reference.route(rows, gate, chosen, scale)
    assert torch.equal(ids, order)
    torch.testing.assert_close(weights, expected, rtol=1e-4, atol=1e-5)


def test_the_lower_number_comes_first_among_equals(device: torch.device):
    rows = torch.ones(3, 16, device=device)
    gate = torch.tensor([1.0, 2.0, 2.0, 1.0, 2.0], device=device)[:, None].repeat(1, 16)
    weights, ids = route(rows, gate, 4, torch.ones(5, device=device))
    assert ids.tolist() == [[1, 2, 4, 0]] * 3
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, device=device))


def test_sizes_that_do_not_fit_are_refused(device: torch.device):
    rows, gate = torch.ones(3, 16, device=device), torch.ones(5, 16, device=device)
    scale = torch.ones(5, device=device)
    with pytest.raises(ValueError, match="1 to 5 experts"):
        route(rows, gate, 6, scale)
    with pytest.raises(ValueError, match="of one depth"):
        route(rows, gate[:, :8], 2, scale)
