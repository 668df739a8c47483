"""Row statistics are the reference's, for any spread of the vocabulary over the chip."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from dg_kernels import reference
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels.row_stats import GROUP, Spread, row_stats

TILE = 256
"""Small, so that a vocabulary a test can afford has several."""


def logits_of(rows: int, vocab: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Random rows, from nearly uniform to nearly sure."""
    chance = torch.Generator().manual_seed(rows * 1000 + vocab)
    widths = torch.logspace(-1, 1.5, rows)[:, None]
    return (torch.randn(rows, vocab, generator=chance) * widths).to(dtype).to(device)


def expect_same(logits: Tensor, **options: Any) -> None:
    """The kernel's statistics and the reference's over the same rows."""
    rows = len(logits)
    device = logits.device
    temperature = torch.linspace(0.4, 1.0, rows, device=device)
    seeds = torch.arange(rows, device=device) * 7919 - 3
    spread = options.pop("spread", Spread())
    found = row_stats(logits, temperature, seeds=seeds, tile=TILE, spread=spread, **options)
    expected = reference.row_stats(logits, temperature, seeds=seeds, tile=TILE, **options)
    assert found.argmax.tolist() == expected.argmax.tolist()
    torch.testing.assert_close(found.log_sum_exp, expected.log_sum_exp, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found.entropy, expected.entropy, rtol=1e-4, atol=2e-5)
    assert found.sample is not None
    assert expected.sample is not None
    assert found.sample.tolist() == expected.sample.tolist()
    torch.testing.assert_close(found.top_logits, expected.top_logits, rtol=1e-5, atol=1e-5)
    assert found.top_ids.tolist() == expected.top_ids.tolist()


@pytest.mark.parametrize(("vocab", "top_k"), [(1000, 64), (1024, 5), (257, 0), (63, 17)])
def test_statistics_are_the_references(
    vocab: int, top_k: int, dtype: torch.dtype, device: torch.device
) -> None:
    logits = logits_of(5, vocab, dtype, device)
    expect_same(logits, top_k=top_k)
    expect_same(logits * 4, softcap=30.0, top_k=min(top_k, 3))


def test_the_spread_over_the_chip_changes_no_bit(device: torch.device) -> None:
    logits = logits_of(3, 1500, torch.float32, device)
    temperature, seeds = torch.full((3,), 0.7, device=device), torch.tensor([1, 2, 3]).to(device)
    found = [
        row_stats(logits, temperature, seeds=seeds, top_k=9, tile=TILE, spread=Spread(tiles))
        for tiles in (1, 2, 5, 100)
    ]
    for other in found[1:]:
        for part, same in zip(found[0], other, strict=True):
            assert part is not None
            assert torch.equal(part, same)


def test_the_lowest_id_wins_where_logits_tie(dtype: torch.dtype, device: torch.device) -> None:
    logits = torch.full((2, 700), 1.0, dtype=dtype, device=device)
    logits[1, [650, 300, 40, 2 * GROUP]] = 5.0
    expect_same(logits, top_k=32)
    stats = row_stats(logits, torch.ones(2, device=device), top_k=4, tile=TILE)
    assert stats.top_ids.tolist() == [[0, 1, 2, 3], [40, 128, 300, 650]]


def test_logits_past_the_softcap_tie(device: torch.device) -> None:
    logits = torch.zeros(1, 300, device=device)
    logits[0, [20, 250]] = torch.tensor([1e4, 2e4], device=device)
    stats = row_stats(logits, torch.ones(1, device=device), softcap=30.0, top_k=2, tile=TILE)
    assert stats.top_ids.tolist() == [[20, 250]]


def test_banned_tokens_are_never_taken(dtype: torch.dtype, device: torch.device) -> None:
    logits = logits_of(4, 600, dtype, device)
    classes = (torch.arange(600) % 4).to(torch.uint8).to(device)
    bans = torch.tensor([0, 1, 2, 3], dtype=torch.uint8, device=device)
    expect_same(logits, top_k=8, classes=classes, bans=bans, softcap=30.0)
    stats = row_stats(
        logits, torch.ones(4, device=device), top_k=8, classes=classes, bans=bans, tile=TILE,
        seeds=torch.arange(4, device=device),
    )  # fmt: skip
    assert stats.sample is not None
    taken = torch.cat((stats.top_ids, stats.argmax[:, None], stats.sample[:, None]), 1)
    assert not (classes[taken] & bans[:, None]).any()


def test_infinite_logits_and_rows_without_a_token(device: torch.device) -> None:
    logits = torch.full((3, 520), -math.inf, device=device)
    logits[0, 515] = 3.0
    logits[1, ::3] = torch.linspace(-1, 1, 174, device=device)
    expect_same(logits, top_k=4)
    expect_same(logits, top_k=4, softcap=30.0)
    stats = row_stats(
        logits, torch.ones(3, device=device), top_k=2, tile=TILE,
        seeds=torch.arange(3, device=device),
    )  # fmt: skip
    assert stats.sample is not None
    assert (stats.argmax[0], stats.sample[0], stats.entropy[0]) == (515, 515, 0.0)
    assert stats.log_sum_exp[2] == -math.inf
    assert (stats.argmax[2], stats.sample[2], stats.entropy[2]) == (0, 0, 0.0)


def test_rows_that_do_not_count_are_zero(device: torch.device) -> None:
    logits = logits_of(3, 400, torch.float32, device)
    logits[1] = math.nan
    active = torch.tensor([True, False, True], device=device)
    found = row_stats(
        logits, torch.ones(3, device=device), top_k=3, tile=TILE, active=active,
        seeds=torch.arange(3, device=device),
    )  # fmt: skip
    for part in found:
        assert part is not None
        assert not part[1].any()
        assert part[0].isfinite().all()
    expect_same(logits[[0, 2]], top_k=3, active=active[[0, 2]])


def test_one_token_and_no_row(device: torch.device) -> None:
    expect_same(torch.tensor([[2.5]], device=device), top_k=1)
    stats = row_stats(torch.zeros(0, 8, device=device), torch.ones(0, device=device), top_k=2)
    assert stats.top_ids.shape == (0, 2)


def test_a_strided_view_is_read_where_it_lies(device: torch.device) -> None:
    expect_same(logits_of(6, 900, torch.float32, device)[::2, :700], top_k=6)


def test_draws_follow_the_distribution(device: torch.device) -> None:
    count, weights = 4000, torch.tensor([0.5, 0.2, 0.0, 0.3])
    logits = torch.full((600,), -math.inf)
    logits[[0, 300, 301, 599]] = weights.log()
    drawn = reference.draw(logits.expand(count, -1), torch.arange(count), TILE)
    share = torch.bincount(drawn, minlength=600)[[0, 300, 301, 599]] / count
    # Four standard deviations of a share of one half.
    assert (share - weights).abs().max() < 4 * math.sqrt(0.25 / count)
    assert share[2] == 0


def test_philox_is_that_of_salmon() -> None:
    assert reference.philox(torch.tensor(0), torch.tensor(0)).item() == 0x6627E8D5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"top_k": 65}, "top_k is 65"), ({"bans": torch.zeros(2)}, "classes and bans")],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        row_stats(torch.zeros(2, 100), torch.ones(2), **options)
