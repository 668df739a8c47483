"""On Hopper, canvas attention in Gluon is the reference's, whatever the batch and the mask."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from dg_kernels import reference

pytest.importorskip("triton.experimental.gluon", reason="Gluon comes with Triton.")

import triton
from dg_kernels import canvas_attention as attention
from dg_kernels import hopper_attention

from tests.kernels.test_canvas_attention import POISON, Case, Sequence, case_of

HOPPER = (
    torch.cuda.is_available()
    and torch.cuda.get_device_capability()[0] == 9
    and triton.__version__.startswith(hopper_attention.TRIED)
)
on_hopper = pytest.mark.skipif(
    not HOPPER,
    reason="Gluon has no interpreter; this needs an H100 and the Triton it was tried with.",
)
LIMIT = {torch.bfloat16: 1e-2, torch.float16: 2e-3}


def case(
    sequences: list[Sequence],
    dtype: torch.dtype,
    page_size: int = 32,
    head_dim: int = 256,
    key_heads: int = 8,
) -> Case:
    """By default as the model's sliding layers are."""
    return case_of(
        sequences, heads=16, key_heads=key_heads, head_dim=head_dim, page_size=page_size,
        dtype=dtype, device=torch.device("cuda"),
    )  # fmt: skip


def expect_same(given: Case, *, used: bool = True, **options: Any) -> None:
    """It is used, or the portable kernel, and finds what the reference finds."""
    scale = given.query.shape[2] ** -0.5
    asked: list[str] = []
    launch = hopper_attention.attend
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            hopper_attention, "attend", lambda *a, **o: (asked.append("gluon"), launch(*a, **o))
        )
        out = torch.full_like(given.query, POISON)
        attention.canvas_attention(*given, scale=scale, out=out, **options)
    assert asked == ["gluon"] * used
    count = int(given.query_starts[-1])
    options.pop("tiling", None)
    expected = reference.canvas_attention(*given, scale=scale, **options)[:count]
    error = (out[:count].float() - expected).norm() / expected.norm()
    assert float(error) < LIMIT[given.query.dtype]
    assert (out[count:] == POISON).all()


@on_hopper
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("rule", ["anchored", "symmetric"])
@pytest.mark.parametrize("window", [None, 100, 1024])
@pytest.mark.parametrize("page_size", [16, 32, 64, 96])
def test_mixed_batches(
    dtype: torch.dtype, rule: reference.MaskRule, window: int | None, page_size: int
):
    sequences = [
        Sequence(256, 1500, False), Sequence(0, 40, False), Sequence(1, 900, True),
        Sequence(100, 100, True), Sequence(31, 64, False), Sequence(70, 1100, True),
    ]  # fmt: skip
    expect_same(case(sequences, dtype, page_size), window=window, rule=rule)


@on_hopper
@pytest.mark.parametrize("past", [0, 1, 31, 33, 500, 1023, 1057, 2100])
@pytest.mark.parametrize("count", [64, 100, 256])
@pytest.mark.parametrize("page_size", [16, 32])
def test_a_lone_canvas_is_split(past: int, count: int, page_size: int):
    given = case([Sequence(count, past + count, False)], torch.bfloat16, page_size)
    expect_same(given, window=1024, rule="symmetric")


@on_hopper
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("page_size", [16, 32, 96, 128])
def test_full_layers_of_mixed_batches(dtype: torch.dtype, page_size: int):
    sequences = [
        Sequence(256, 1500, False), Sequence(0, 40, False), Sequence(1, 900, True),
        Sequence(100, 100, True), Sequence(31, 64, False), Sequence(70, 1100, True),
    ]  # fmt: skip
    expect_same(case(sequences, dtype, page_size, head_dim=512, key_heads=2))


@on_hopper
@pytest.mark.parametrize("past", [0, 1, 15, 33, 500, 1057, 4096])
@pytest.mark.parametrize("count", [16, 32, 200, 256, 288])
def test_full_layers_of_a_lone_canvas(past: int, count: int):
    given = case(
        [Sequence(count, past + count, False)], torch.bfloat16, head_dim=512, key_heads=2
    )  # fmt: skip
    expect_same(given)
    leading = torch.tensor([min(9, count)], dtype=torch.int32, device="cuda")
    expect_same(given, leading=leading)


@on_hopper
def test_other_tilings_are_the_portable_kernels():
    given = case([Sequence(256, 700, False)], torch.bfloat16)
    tiling = attention.choose_tiling(256, 16, 8, 256)
    expect_same(given, used=False, tiling=tiling)
    expect_same(given, used=False, tiling=tiling._replace(block_m=64, splits=1))
    expect_same(given, tiling=tiling._replace(partial_dtype=torch.bfloat16))


@on_hopper
@pytest.mark.parametrize("head_dim", [64, 128])
def test_smaller_heads(head_dim: int):
    given = case([Sequence(256, 700, False)], torch.bfloat16, head_dim=head_dim)
    expect_same(given, window=300, rule="anchored")


@on_hopper
def test_the_end_of_a_prompt_stands_in_front_of_its_canvas():
    given = case([Sequence(288, 900, False), Sequence(40, 90, True)], torch.bfloat16)
    leading = torch.tensor([32, 0], dtype=torch.int32, device="cuda")
    expect_same(given, window=512, rule="anchored", leading=leading)


@on_hopper
def test_idle_sequences_and_rows_behind_the_last_one():
    given = case(
        [Sequence(64, 200, False), Sequence(64, 64, False), Sequence(9, 9, True)], torch.bfloat16
    )
    given.key_counts[1] = 0
    given.query_starts[3] = 128
    expect_same(given, window=150, rule="symmetric")


def test_what_it_is_not_made_for_is_left_to_the_portable_kernel(monkeypatch: pytest.MonkeyPatch):
    device = torch.device("cuda" if HOPPER else "cpu")
    query = torch.zeros(256, 16, 256, dtype=torch.bfloat16, device=device)
    pages = torch.zeros(4, 32, 8, 256, dtype=torch.bfloat16, device=device)

    def fits(**changed: Any) -> bool:
        given = {"query": query, "pages": pages, "scale": 1.0} | changed
        return hopper_attention.fits(
            given["query"], given["pages"], given["pages"], given["scale"]
        )  # fmt: skip

    assert fits() == HOPPER
    assert not fits(scale=-1.0)
    assert not fits(query=query.float(), pages=pages.float())
    assert not fits(pages=pages[:, :8])
    assert not fits(query=torch.zeros(256, 16, 96, dtype=torch.bfloat16, device=device))
    monkeypatch.setattr(triton, "__version__", "4.0.0")
    assert not fits()
