"""One launch makes queries of a product, and keys and values in their pages."""

from __future__ import annotations

import pytest
import torch
from dg_kernels import reference

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels.rotate import rotate

TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3}
ROWS, SIZE, PAGE, PAGES, EPSILON = 7, 16, 4, 5, 1e-6


def inputs(heads: int, key_heads: int, dtype: torch.dtype, device: torch.device):
    """Arguments up to the number of heads."""
    chance = torch.Generator().manual_seed(heads)
    qkv = torch.randn(ROWS, (heads + 2 * key_heads) * SIZE, generator=chance)
    angle = torch.arange(30)[:, None] * torch.rand(SIZE // 2, generator=chance)
    turns = torch.cat((angle.cos(), angle.sin()), 1)
    weights = 1 + 0.2 * torch.randn(2, SIZE, generator=chance)
    positions = torch.randint(0, 30, (ROWS,), generator=chance)
    to = [one.to(dtype).to(device) for one in (qkv, turns, *weights)]
    return (to[0], positions.to(device), *to[1:], EPSILON, heads)


@pytest.mark.parametrize(("heads", "key_heads"), [(16, 8), (6, 2), (4, 1)])
def test_heads_are_the_reference_s(
    heads: int, key_heads: int, dtype: torch.dtype, device: torch.device
):
    given = inputs(heads, key_heads, dtype, device)
    # Keys and values of a token lie beside each other in one tensor, as vLLM keeps them.
    cache = torch.full((PAGES, key_heads, PAGE, 2 * SIZE), 7.0, dtype=dtype, device=device)
    pages = cache.transpose(1, 2).split(SIZE, -1)
    slots = torch.tensor([0, 9, -1, 10, 19, 3], device=device)
    found = rotate(*given, (pages[0], pages[1]), slots)
    query, key, value = reference.rotate(*given)
    torch.testing.assert_close(found, query, rtol=0, atol=TOLERANCE[dtype] * 4)
    for rows, page in ((key, pages[0]), (value, pages[1])):
        flat = page.reshape(PAGES * PAGE, key_heads, SIZE)
        for row, slot in enumerate(slots.tolist()):
            if slot >= 0:
                torch.testing.assert_close(flat[slot], rows[row], rtol=0, atol=TOLERANCE[dtype] * 4)
        others = [slot for slot in range(PAGES * PAGE) if slot not in slots.tolist()]
        assert (flat[others] == 7).all()


def test_without_slots_nothing_is_written(device: torch.device):
    given = inputs(4, 2, torch.float32, device)
    pages = torch.full((2, PAGES, PAGE, 2, SIZE), 7.0, device=device)
    found = rotate(*given, (pages[0], pages[1]), None)
    torch.testing.assert_close(found, reference.rotate(*given)[0])
    assert (pages == 7).all()
    torch.testing.assert_close(rotate(*given, None, None), found)


def test_rows_that_do_not_fit_are_refused(device: torch.device):
    qkv, positions, turns, *weights = inputs(4, 2, torch.float32, device)
    with pytest.raises(ValueError, match="whole heads"):
        rotate(qkv[:, :-1].contiguous(), positions, turns, *weights, None, None)
    with pytest.raises(ValueError, match="turns of a head's size"):
        rotate(qkv, positions, turns[:, 1:], *weights, None, None)
    pages = torch.zeros(PAGES, PAGE, 3, SIZE, device=device)
    with pytest.raises(ValueError, match="pages"):
        rotate(qkv, positions, turns, *weights, (pages, pages), positions)
