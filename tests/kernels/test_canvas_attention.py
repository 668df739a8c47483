"""Canvas attention is dense attention, whatever the batch, the mask and the cut."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import pytest
import torch
from dg_engine.attention import decoder_masks, encoder_masks
from dg_engine.job import MaskRule
from dg_kernels import reference
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed; kernels run where it is.")

from dg_kernels.canvas_attention import Tiling, attend, canvas_attention, choose_tiling
from dg_kernels.splits import join_rows

TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3}
POISON = 6.0e4
"""Far outside of what attention gives."""


class Sequence(NamedTuple):
    """One of a batch."""

    queries: int
    keys: int
    causal: bool


class Case(NamedTuple):
    """Arguments of canvas_attention."""

    query: Tensor
    key_pages: Tensor
    value_pages: Tensor
    block_table: Tensor
    query_starts: Tensor
    key_counts: Tensor
    causal: Tensor


def case_of(
    sequences: list[Sequence],
    *,
    heads: int = 4,
    key_heads: int = 2,
    head_dim: int = 64,
    page_size: int = 16,
    dtype: torch.dtype = torch.float32,
    device: torch.device,
    seed: int = 0,
) -> Case:
    """Random contents in scattered pages; what no sequence owns is NaN."""
    chance = torch.Generator().manual_seed(seed)
    needed = [-(-s.keys // page_size) for s in sequences]
    pages = sum(needed) + 3
    order = iter(torch.randperm(pages, generator=chance).tolist())
    table = torch.zeros(len(sequences), max(1, *needed), dtype=torch.int32)
    shape = (pages, page_size, key_heads, head_dim)
    cached = torch.full((2, *shape), torch.nan)
    for row, (sequence, count) in enumerate(zip(sequences, needed, strict=True)):
        own = list(itertools.islice(order, count))
        table[row, :count] = torch.tensor(own, dtype=torch.int32)
        for at in range(sequence.keys):
            cached[:, own[at // page_size], at % page_size] = torch.randn(
                2, key_heads, head_dim, generator=chance
            )
    starts = [0, *itertools.accumulate(s.queries for s in sequences)]
    query = torch.randn(starts[-1], heads, head_dim, generator=chance)

    def ints(values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    return Case(
        query.to(dtype).to(device),
        *cached.to(dtype).to(device),
        table.to(device),
        ints(starts),
        ints([s.keys for s in sequences]),
        torch.tensor([s.causal for s in sequences]).to(device),
    )


def expect_same(case: Case, tiling: Tiling | None, **options: Any) -> Tensor:
    """The kernel's rows and the reference's; every row is written and none is NaN."""
    expected = reference.canvas_attention(*case, scale=0.3, **options)
    tolerance = TOLERANCE[case.query.dtype]
    out = torch.full_like(case.query, POISON)
    found = canvas_attention(*case, scale=0.3, tiling=tiling, out=out, **options)
    torch.testing.assert_close(found.float(), expected, rtol=tolerance, atol=tolerance)
    return found


MIXED = [
    Sequence(9, 37, False),
    Sequence(1, 30, True),
    Sequence(0, 12, True),
    Sequence(5, 5, True),
    Sequence(8, 8, False),
]


@pytest.mark.parametrize(
    ("window", "rule", "splits"),
    [
        (None, "anchored", 1),
        (8, "anchored", 3),
        (8, "symmetric", 1),
        (21, "anchored", 1),
        (21, "symmetric", 3),
    ],
)
def test_mixed_batches_see_what_their_masks_allow(
    window: int | None, rule: reference.MaskRule, splits: int, dtype: torch.dtype,
    device: torch.device,
) -> None:  # fmt: skip
    case = case_of(MIXED, dtype=dtype, device=device)
    expect_same(case, Tiling(32, 16, splits), window=window, rule=rule)


@pytest.mark.parametrize(
    ("head_dim", "key_heads"),
    [(64, 8), (64, 2), (128, 8), (128, 2), (256, 8), (256, 2), (512, 8), (512, 2)],
)
def test_head_sizes_and_groups(
    head_dim: int, key_heads: int, dtype: torch.dtype, device: torch.device
) -> None:
    case = case_of(
        [Sequence(5, 40, False)], heads=16, key_heads=key_heads, head_dim=head_dim,
        page_size=32, dtype=dtype, device=device,
    )  # fmt: skip
    tiling = Tiling(16, 16, splits=2, value_parts=2, stages=1)
    expect_same(case, tiling, window=24, rule="anchored")


@pytest.mark.parametrize("rule", ["anchored", "symmetric"])
@pytest.mark.parametrize(("window", "splits"), [(None, 2), (8, 1), (8, 3), (21, 2)])
def test_the_end_of_a_prompt_in_front_of_its_canvas(
    window: int | None, rule: reference.MaskRule, splits: int, device: torch.device
) -> None:
    """Prompt rows are causal and blind to the canvas, which sees them like the rest of the prompt;
    together they are what two launches would give."""
    sequences = [Sequence(14, 60, False), Sequence(9, 9, False), Sequence(6, 30, True)]
    case = case_of([*sequences, Sequence(5, 40, False)], device=device)
    leading = torch.tensor([6, 4, 0, 0], dtype=torch.int32, device=device)
    options: dict[str, Any] = {"window": window, "rule": rule}
    found = expect_same(case, Tiling(16, 16, splits), leading=leading, **options)
    alone = case_of(sequences[:1], device=device)
    front = Case(
        alone.query[:6], alone.key_pages, alone.value_pages, alone.block_table,
        torch.tensor([0, 6], dtype=torch.int32, device=device), alone.key_counts - 8,
        torch.tensor([True], device=device),
    )  # fmt: skip
    rest = front._replace(
        query=alone.query[6:], query_starts=torch.tensor([0, 8], dtype=torch.int32, device=device),
        key_counts=alone.key_counts, causal=torch.tensor([False], device=device),
    )  # fmt: skip
    apart = [canvas_attention(*part, scale=0.3, **options) for part in (front, rest)]
    joined = canvas_attention(
        *alone, scale=0.3, leading=torch.tensor([6], dtype=torch.int32, device=device), **options
    )  # fmt: skip
    torch.testing.assert_close(joined, torch.cat(apart), rtol=2e-5, atol=2e-5)
    assert found.isfinite().all()


@pytest.mark.parametrize("seed", range(10))
def test_random_batches(seed: int, device: torch.device) -> None:
    """Types, lengths, groups, pages, windows, rules and cuts drawn at random."""
    chance = torch.Generator().manual_seed(100 + seed)

    def among(*values: Any) -> Any:
        return values[int(torch.randint(len(values), (), generator=chance))]

    sequences: list[Sequence] = []
    for _ in range(among(1, 2, 3)):
        queries = among(0, 1, 2, 7, 16)
        sequences.append(Sequence(queries, queries + among(0, 1, 5, 40), among(True, False)))
    sequences.append(Sequence(4, 9, False))
    key_heads, dtype = among(1, 2), among(torch.float32, torch.float16)
    case = case_of(
        sequences, heads=key_heads * among(1, 2, 4, 8), key_heads=key_heads,
        page_size=among(8, 16, 64), dtype=dtype, device=device, seed=seed,
    )  # fmt: skip
    tiling = Tiling(
        among(32, 64), among(16, 32), among(1, 2, 5), among(1, 2),
        partial_dtype=among(torch.float32, dtype),
    )  # fmt: skip
    expect_same(case, tiling, window=among(None, 1, 4, 25), rule=among("anchored", "symmetric"))


@pytest.mark.parametrize("page_size", [8, 16, 32, 128])
def test_pages_may_be_smaller_or_larger_than_tiles(page_size: int, device: torch.device) -> None:
    case = case_of(
        [Sequence(7, 150, False), Sequence(3, 30, True)], page_size=page_size, device=device
    )  # fmt: skip
    expect_same(case, Tiling(16, 16, 2), window=50)


@pytest.mark.parametrize("rule", list(MaskRule))
@pytest.mark.parametrize(("past", "tokens"), [(0, 6), (3, 6), (9, 6), (30, 6), (5, 20)])
def test_masks_are_the_engines(rule: MaskRule, past: int, tokens: int) -> None:
    window, device = 10, torch.device("cpu")
    two_sided = decoder_masks(rule, window, past, tokens, None, device)
    causal = encoder_masks(window, past, tokens, device)
    for masks, is_causal in ((two_sided, False), (causal, True)):
        for mask, bound in ((masks.sliding, window), (masks.full, None)):
            all_prompt = torch.ones(tokens, past, dtype=torch.bool)
            all_own = torch.ones(1, tokens, tokens, dtype=torch.bool)
            expected = torch.cat(
                (
                    all_prompt if mask.prompt is None else mask.prompt,
                    (all_own if mask.own is None else mask.own)[0],
                ),
                1,
            )
            found = reference.visible(
                tokens, past + tokens, causal=is_causal, window=bound, rule=rule.value
            )
            assert torch.equal(found, expected)


@pytest.mark.parametrize("splits", [1, 4])
def test_rows_without_a_key_are_zero(splits: int, device: torch.device) -> None:
    """A captured graph's idle sequences have queries but no token."""
    case = case_of([Sequence(4, 20, False), Sequence(4, 4, False)], device=device)
    case.key_counts[1] = 0
    found = canvas_attention(*case, tiling=Tiling(16, 16, splits))
    assert found[:4].isfinite().all()
    assert not found[4:].any()


@pytest.mark.parametrize("splits", [1, 4])
def test_rows_behind_the_last_sequence_are_left_alone(splits: int, device: torch.device) -> None:
    case = case_of([Sequence(4, 20, False), Sequence(3, 9, True)], device=device)
    case.query_starts[2] = 4
    out = torch.full_like(case.query, POISON)
    canvas_attention(*case, tiling=Tiling(16, 16, splits), out=out)
    assert (out[4:] == POISON).all()
    assert out[:4].abs().max() < 10


@pytest.mark.parametrize(("heads", "splits"), [(4, 2), (12, 3)])
def test_splits_may_be_joined_into_quantised_rows(
    heads: int, splits: int, dtype: torch.dtype, device: torch.device
) -> None:
    """What `quantise` makes of the attention's output; an idle row is 0 and so is one behind."""
    sequences = [Sequence(4, 70, False), Sequence(4, 4, False), Sequence(3, 9, True)]
    case = case_of(sequences, heads=heads, key_heads=heads // 2, dtype=dtype, device=device)
    case.key_counts[1] = 0
    case.query_starts[3] = 8
    tiling = Tiling(16, 16, splits, partial_dtype=dtype)
    out = torch.full_like(case.query, POISON)
    parts = attend(*case, out, scale=0.3, tiling=tiling)
    assert parts is not None
    assert (out == POISON).all()
    rows, scales = join_rows(parts, torch.float16)
    canvas_attention(*case, scale=0.3, tiling=tiling, out=out)
    expected, factors = reference.quantised(out[:8].flatten(1), torch.float16)
    torch.testing.assert_close(scales[:8], factors)
    torch.testing.assert_close(rows[:8], expected)
    assert not rows[4:].any()
    assert rows[:4].any()


def test_what_is_not_split_needs_no_joining(device: torch.device) -> None:
    case = case_of([Sequence(4, 20, False)], device=device)
    out = torch.full_like(case.query, POISON)
    assert attend(*case, out, tiling=Tiling(16, 16)) is None
    assert out.abs().max() < 10


def test_tiles_outside_the_mask_are_not_read(device: torch.device) -> None:
    """NaN in a page that a window hides would spoil every row that reads it."""
    case = case_of([Sequence(8, 100, False)], device=device)
    hidden = case.block_table[0, :4].long()
    case.key_pages[hidden] = torch.nan
    case.value_pages[hidden] = torch.nan
    found = canvas_attention(*case, tiling=Tiling(16, 16, 2), window=24, rule="anchored")
    assert found.isfinite().all()


def test_strides_may_be_those_of_one_tensor_for_keys_and_values(device: torch.device) -> None:
    case = case_of([Sequence(6, 40, False)], device=device)
    joined = torch.stack((case.key_pages, case.value_pages), 1)
    keys, values = joined.unbind(1)
    expect_same(case._replace(key_pages=keys, value_pages=values), Tiling(16, 16, 2))


@pytest.mark.parametrize(
    ("canvas", "key_heads", "head_dim", "least"),
    # Few queries behind a window have few keys to share: half the chip was faster on an H200.
    [(32, 8, 256, 64), (256, 8, 256, 119), (32, 2, 512, 119), (256, 2, 512, 119)],
)
@pytest.mark.parametrize("gluon", [False, True])
def test_one_canvas_fills_the_chip(
    canvas: int, key_heads: int, head_dim: int, least: int, gluon: bool
) -> None:
    tiling = choose_tiling(canvas, 16, key_heads, head_dim, gluon=gluon)
    rows = canvas * 16 // key_heads
    programs = rows // tiling.block_m * key_heads * tiling.splits * tiling.value_parts
    assert least <= programs <= 132


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        ({"query": torch.zeros(3, 4, 96)}, {}, "A head of 96"),
        ({"query": torch.zeros(3, 6, 64)}, {}, "6 heads over 2"),
        ({}, {"window": 0}, "A window of 0"),
        ({"query": torch.zeros(3, 64, 4).transpose(1, 2)}, {}, "contiguous along the head"),
    ],
)
def test_what_does_not_fit_is_refused(
    change: dict[str, Tensor], options: dict[str, Any], sentence: str
) -> None:
    case = case_of([Sequence(3, 8, True)], device=torch.device("cpu"))._replace(**change)
    with pytest.raises(ValueError, match=sentence):
        canvas_attention(*case, **options)
