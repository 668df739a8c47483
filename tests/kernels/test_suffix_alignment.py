"""Suffix alignment finds where a canvas already says what stands behind the hole."""

from __future__ import annotations

import math

import pytest
import torch
from dg_kernels import reference
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels.suffix_alignment import suffix_alignment

CANVAS, VOCAB = 9, 40


def arguments(
    suffix: list[list[int]], counts: list[int], dtype: torch.dtype, device: torch.device, cap: float
) -> tuple[Tensor, ...]:
    """Random canvases and what belongs to them."""
    chance = torch.Generator().manual_seed(4)
    logits = torch.randn(len(suffix), CANVAS, VOCAB, generator=chance) * 6
    logits = logits.to(dtype).to(device)
    temperature = torch.linspace(0.4, 1, CANVAS, device=device).repeat(len(suffix), 1)
    found = reference.softcapped(logits, cap) / temperature[..., None]
    return (
        logits,
        temperature,
        torch.logsumexp(found, -1),
        torch.tensor(suffix, dtype=torch.int64, device=device),
        torch.tensor(counts, dtype=torch.int32, device=device),
    )


@pytest.mark.parametrize("cap", [0.0, 30.0])
def test_scores_are_the_references(cap: float, dtype: torch.dtype, device: torch.device) -> None:
    given = arguments([[1, 2, 3], [7, 7, 0]], [3, 2], dtype, device, cap)
    found = suffix_alignment(*given, softcap=cap)
    torch.testing.assert_close(found, reference.suffix_alignment(*given, softcap=cap))


def test_the_best_offset_is_where_the_suffix_stands(device: torch.device) -> None:
    logits, temperature, _, suffix, counts = arguments([[5, 6, 7]], [3], torch.float32, device, 0)
    logits[0, [4, 5, 6], [5, 6, 7]] = 40.0
    found = logits / temperature[..., None]
    scores = suffix_alignment(logits, temperature, torch.logsumexp(found, -1), suffix, counts)
    whole = scores[0, : CANVAS - 2]
    assert whole.argmax() == 4
    assert whole[4] > -1e-3


def test_a_banned_token_makes_its_offsets_impossible(device: torch.device) -> None:
    logits, temperature, _, suffix, counts = arguments([[5, 6]], [2], torch.float32, device, 0)
    logits[0, 3, 6] = -math.inf
    logits[0, 8] = -math.inf
    found = logits / temperature[..., None]
    scores = suffix_alignment(logits, temperature, torch.logsumexp(found, -1), suffix, counts)
    assert (scores[0] == -math.inf).nonzero()[:, 0].tolist() == [2, 7, 8]


def test_no_suffix_scores_nothing(device: torch.device) -> None:
    given = arguments([[1]], [0], torch.float32, device, 0.0)
    assert not suffix_alignment(*given).any()
    given = arguments([[]], [0], torch.float32, device, 0.0)
    assert not suffix_alignment(*given).any()
