"""A scaled product is the plain one, however it is cut."""

from __future__ import annotations

import pytest
import torch
from dg_kernels import reference

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels.scaled_product import Cut, choose_cut, scaled_product

SHAPES = [(1, 48, 64), (32, 96, 160), (33, 100, 96), (70, 130, 64)]
"""Rows, columns, depth; some end within a tile."""
CUTS = [
    Cut(16, 32, 32, warps=4, stages=2),
    Cut(32, 16, 64, splits=2, warps=4, stages=2),
    Cut(16, 64, 32, splits=3, swapped=True, warps=4, stages=2),
    Cut(64, 64, 32, swapped=True, warps=4, stages=2),
]


def operands(rows: int, columns: int, depth: int, dtype: torch.dtype, device: torch.device):
    """Random, with scales."""
    chance = torch.Generator().manual_seed(rows)
    made = [
        torch.randn(rows, depth, generator=chance),
        torch.randn(columns, depth, generator=chance),
        torch.rand(rows, 1, generator=chance) + 0.5,
        torch.rand(columns, 1, generator=chance) + 0.5,
    ]
    return [*(x.to(dtype).to(device) for x in made[:2]), *(x.to(device) for x in made[2:])]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("rows", "columns", "depth"), SHAPES)
def test_product_is_the_plain_one(
    rows: int, columns: int, depth: int, cut: Cut, dtype: torch.dtype, device: torch.device
):
    given = operands(rows, columns, depth, dtype, device)
    tickets = torch.zeros(64, dtype=torch.int32, device=device)
    out = torch.full((rows, columns), torch.nan, device=device)
    expected = reference.scaled_product(*given, dtype=torch.float32)
    for _ in range(2):
        scaled_product(*given, out=out, cut=cut, tickets=tickets)
        assert torch.allclose(out, expected, atol=2e-3, rtol=1e-4)
        assert tickets.count_nonzero() == 0


def test_rows_of_a_wider_matrix(device: torch.device):
    rows_of, weights, row_scales, column_scales = operands(8, 32, 64, torch.float32, device)
    wide = torch.full((8, 100), torch.nan, device=device)
    wide[:, :64] = rows_of
    out = torch.zeros(8, 40, device=device)
    cut = Cut(16, 32, 32, stages=2)
    scaled_product(wide[:, :64], weights, row_scales, column_scales, out=out[:, :32], cut=cut)
    expected = reference.scaled_product(
        rows_of, weights, row_scales, column_scales, dtype=torch.float32
    )
    assert torch.allclose(out[:, :32], expected, atol=1e-4)
    assert out[:, 32:].count_nonzero() == 0


def test_nothing_to_multiply(device: torch.device):
    given = operands(0, 8, 32, torch.float32, device)
    assert scaled_product(*given).shape == (0, 8)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="FP8 products need a GPU.")
@pytest.mark.parametrize("rows", [1, 32, 100, 256])
@pytest.mark.parametrize(("columns", "depth"), [(8192, 2816), (2816, 4096), (2816, 2112)])
def test_product_of_fp8(rows: int, columns: int, depth: int):
    device = torch.device("cuda")
    given = operands(rows, columns, depth, torch.float8_e4m3fn, device)
    tickets = torch.zeros(4096, dtype=torch.int32, device=device)
    expected = reference.scaled_product(*given, dtype=torch.float32)
    for cut in (None, choose_cut(rows, columns, depth)._replace(splits=3)):
        found = scaled_product(*given, cut=cut, tickets=tickets).float()
        assert float((found - expected).norm() / expected.norm()) < 1e-2


def test_what_does_not_fit_is_refused(device: torch.device):
    rows_of, weights, row_scales, column_scales = operands(8, 32, 64, torch.float32, device)
    with pytest.raises(ValueError, match="do not fit"):
        scaled_product(rows_of[:, :32], weights, row_scales, column_scales)
    with pytest.raises(ValueError, match="contiguous"):
        scaled_product(rows_of[:, ::2], weights[:, ::2], row_scales, column_scales)
    with pytest.raises(ValueError, match="scales"):
        scaled_product(rows_of, weights, row_scales[1:], column_scales)
    cut = Cut(16, 16, 32, splits=2)
    with pytest.raises(ValueError, match="tickets"):
        scaled_product(rows_of, weights, row_scales, column_scales, cut=cut)


def test_one_canvas_fills_the_chip():
    for rows, columns, depth in [(256, 8192, 2816), (256, 2816, 4096), (32, 8192, 2816)]:
        cut = choose_cut(rows, columns, depth)
        tiles = -(-rows // cut.block_m) * -(-columns // cut.block_n)
        assert tiles * cut.splits >= 132 * 3 // 4
