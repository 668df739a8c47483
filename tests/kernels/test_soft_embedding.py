"""Soft embeddings of a few tokens follow the renormalised softmax, and of all the full sum."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from dg_kernels import reference

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels.soft_embedding import soft_embedding

VOCAB, SCALE = 90, math.sqrt(300)
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3}


def table_of(hidden: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    chance = torch.Generator().manual_seed(hidden)
    return torch.randn(VOCAB, hidden, generator=chance).to(dtype).to(device)


@pytest.mark.parametrize(("top_k", "hidden"), [(1, 64), (5, 300), (16, 256), (64, 40)])
def test_it_is_the_references(
    top_k: int, hidden: int, dtype: torch.dtype, device: torch.device
) -> None:
    table = table_of(hidden, dtype, device)
    found = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(1)).to(device) * 4
    logits, ids = found.topk(top_k, -1)
    kernel = soft_embedding(logits, ids, table, scale=SCALE)
    expected = reference.soft_embedding(logits, ids, table, scale=SCALE)
    tolerance = TOLERANCE[dtype]
    torch.testing.assert_close(kernel.float(), expected, rtol=tolerance, atol=tolerance)


def test_all_tokens_are_the_full_sum(device: torch.device) -> None:
    table = table_of(48, torch.float32, device)
    found = torch.randn(2, VOCAB, generator=torch.Generator().manual_seed(2)).to(device)
    logits, ids = found.topk(VOCAB, -1)
    kernel = soft_embedding(logits, ids, table, scale=SCALE)
    full = reference.full_soft_embedding(found, table, scale=SCALE)
    torch.testing.assert_close(kernel, full, rtol=1e-5, atol=1e-5)


def test_what_weighs_nothing_is_not_read(device: torch.device) -> None:
    table = table_of(32, torch.float32, device)
    table[7] = torch.nan
    logits = torch.tensor([[0.0, -math.inf], [-math.inf, -math.inf]], device=device)
    kernel = soft_embedding(logits, torch.tensor([[3, 7], [7, 7]]).to(device), table, scale=2.0)
    torch.testing.assert_close(kernel[0], table[3] * 2.0)
    assert not kernel[1].any()


def test_truncation_falls_with_k_and_vanishes_for_a_sure_row() -> None:
    table = table_of(64, torch.float32, torch.device("cpu"))
    found = torch.randn(4, VOCAB, generator=torch.Generator().manual_seed(3)) * 2
    found[3, 11] = 60.0
    errors = [reference.truncation(found, table, k) for k in (1, 8, 32, VOCAB)]
    for fewer, more in itertools.pairwise(errors):
        assert (more.dropped <= fewer.dropped + 1e-6).all()
    assert (errors[0].error[:3] > 0.1).all()
    assert errors[0].error[3] < 1e-5
    assert (errors[-1].error < 1e-5).all()


def test_no_token_and_no_row(device: torch.device) -> None:
    table = table_of(32, torch.float32, device)
    nothing = torch.zeros(2, 0, device=device)
    assert not soft_embedding(nothing, nothing.long(), table, scale=1.0).any()
    assert soft_embedding(nothing.T, nothing.T.long(), table, scale=1.0).shape == (0, 32)


def test_what_is_not_contiguous_is_refused() -> None:
    table = table_of(32, torch.float32, torch.device("cpu"))
    logits = torch.zeros(2, 4).T
    with pytest.raises(ValueError, match="contiguous"):
        soft_embedding(logits, torch.zeros(4, 2, dtype=torch.int64), table, scale=1.0)
