"""Rows find their experts, and are multiplied by them."""

from __future__ import annotations

import pytest
import torch
from dg_kernels import reference

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels import experts
from dg_kernels.experts import ProductTiling

EXPERTS, COLUMNS, DEPTH = 6, 40, 80
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3}


def chosen(count: int, copies: int, device: torch.device) -> torch.Tensor:
    """Distinct experts for each row, never the last one."""
    chance = torch.Generator().manual_seed(count)
    scores = torch.rand(count, EXPERTS - 1, generator=chance)
    return scores.topk(copies).indices.int().to(device)


@pytest.mark.parametrize("count", [1, 7, 33])
@pytest.mark.parametrize("block", [2, 16])
def test_places_are_the_reference_s(count: int, block: int, device: torch.device):
    ids = chosen(count, 3, device)
    found, expected = (one.place(ids, EXPERTS, block) for one in (experts, reference))
    used = int(expected.total)
    assert int(found.total) == used
    assert torch.equal(found.rows[:used], expected.rows)
    assert torch.equal(found.experts[: used // block], expected.experts)
    assert len(found.experts) * block == len(found.rows)


def test_all_rows_may_choose_one_expert(device: torch.device):
    ids = torch.full((40, 1), 4, dtype=torch.int32, device=device)
    found = experts.place(ids, EXPERTS, 16)
    assert int(found.total) == 48
    assert found.rows[:48].tolist() == [*range(40), *[40] * 8]
    assert found.experts[:3].tolist() == [4, 4, 4]


@pytest.mark.parametrize(("programs", "depth"), [(0, 32), (3, 32), (0, 64), (2, 128)])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_are_the_reference_s(
    programs: int, depth: int, weighted: bool, dtype: torch.dtype, device: torch.device
):
    chance = torch.Generator().manual_seed(1)
    ids = chosen(19, 3, device)
    copies = 1 if weighted else 3
    rows = torch.randn(ids.numel() // copies, DEPTH, generator=chance).to(dtype).to(device)
    row_scales = (1 + torch.rand(len(rows), 1, generator=chance)).to(device)
    table = (torch.randn(EXPERTS, COLUMNS, DEPTH, generator=chance) / 8).to(dtype).to(device)
    scales = (1 + torch.rand(EXPERTS, COLUMNS, 1, generator=chance)).to(device)
    weights = torch.rand(ids.shape, generator=chance).to(device) if weighted else None
    out = torch.full((ids.numel(), COLUMNS), torch.nan, dtype=dtype, device=device)
    found = experts.multiply(
        rows, row_scales, table, scales, experts.place(ids, EXPERTS, 16), out, weights=weights,
        copies=copies, tiling=ProductTiling(columns=16, depth=depth, programs=programs),
    )  # fmt: skip
    expected = reference.multiply(
        rows, row_scales, table, scales, ids, weights=weights, copies=copies
    )
    bound = TOLERANCE[dtype] * float(expected.abs().max())
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=bound)


def test_sizes_that_do_not_fit_are_refused(device: torch.device):
    ids = chosen(4, 2, device)
    with pytest.raises(ValueError, match="power of 2"):
        experts.place(ids, EXPERTS, 12)
    places = experts.place(ids, EXPERTS, 16)
    rows, table = torch.ones(4, DEPTH, device=device), torch.ones(EXPERTS, COLUMNS, DEPTH)
    scales, out = torch.ones(EXPERTS, COLUMNS), torch.ones(8, COLUMNS)
    with pytest.raises(ValueError, match="fit each other"):
        experts.multiply(rows, torch.ones(4), table, scales, places, out, copies=1)
