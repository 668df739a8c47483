"""On Hopper, the experts in one launch are the three launches they replace, bit for bit."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from dg_kernels import reference
from dg_kernels.reference import FP8
from torch import Tensor

pytest.importorskip("triton.experimental.gluon", reason="Gluon comes with Triton.")

from dg_kernels import experts, hopper_experts
from dg_kernels.feed_forward import activate

from tests.kernels.test_hopper_attention import on_hopper

LIMIT = 0.02
"""Off the reference, of its length: what bfloat16 and FP8 round another way for other sums."""


class Case(NamedTuple):
    """What a call takes, but for the places."""

    rows: Tensor
    row_scales: Tensor
    experts_in: Tensor
    in_scales: Tensor
    experts_out: Tensor
    out_scales: Tensor
    ids: Tensor
    weights: Tensor


def case(
    count: int, *, chosen: int = 8, number: int = 128, hidden: int = 512, inner: int = 192,
    of: int | None = None,
) -> Case:  # fmt: skip
    """Random, by the number of rows; their experts are among the first `of`."""
    torch.manual_seed(count + inner)

    def fp8(*shape: int) -> Tensor:
        return torch.randn(shape, device="cuda").to(FP8)

    def scales(*shape: int) -> Tensor:
        return (0.5 + torch.rand(shape, device="cuda")) / 16

    scores = torch.rand(count, of or number, device="cuda")
    return Case(
        fp8(count, hidden), scales(count, 1), fp8(number, 2 * inner, hidden),
        scales(number, 2 * inner, 1), fp8(number, hidden, inner), scales(number, hidden, 1),
        scores.topk(chosen).indices.int(), torch.rand(count, chosen, device="cuda"),
    )  # fmt: skip


def in_one(given: Case, block: int) -> Tensor:
    """By one launch."""
    places = experts.place(given.ids, len(given.experts_in), block)
    return hopper_experts.feed(*given[:6], given.weights, places, block=block)


def in_three(given: Case, block: int) -> Tensor:
    """By the launches that it replaces."""
    places = experts.place(given.ids, len(given.experts_in), block)
    count, copies = given.ids.numel(), given.ids.shape[1]
    to = {"dtype": torch.bfloat16, "device": "cuda"}
    gate_up = torch.empty(count, given.experts_in.shape[1], **to)
    experts.multiply(
        given.rows, given.row_scales, given.experts_in, given.in_scales, places, gate_up,
        copies=copies, block=block,
    )  # fmt: skip
    out = torch.empty(count, given.rows.shape[1], **to)
    return experts.multiply(
        *activate(gate_up), given.experts_out, given.out_scales, places, out,
        weights=given.weights, block=block,
    )  # fmt: skip


@on_hopper
@pytest.mark.parametrize(
    ("count", "block", "hidden", "inner"),
    [
        (256, 32, 2816, 704),
        (32, 16, 2816, 704),
        (130, 32, 2816, 704),
        (256, 32, 2816, 352),
        (16, 16, 2816, 704),
        (200, 32, 512, 192),
        (77, 16, 512, 80),
        (64, 32, 256, 16),
    ],
)
def test_one_launch_is_the_three_it_replaces(count: int, block: int, hidden: int, inner: int):
    given = case(count, hidden=hidden, inner=inner)
    assert hopper_experts.fits(given.experts_in, given.experts_out, block)
    expected = in_three(given, block)
    for _ in range(3):
        assert torch.equal(in_one(given, block), expected)


@on_hopper
@pytest.mark.parametrize("count", [1, 3, 40, 256])
@pytest.mark.parametrize("of", [8, 9, 128])
def test_however_few_experts_are_chosen(count: int, of: int):
    given = case(count, of=of)
    assert torch.equal(in_one(given, 16), in_three(given, 16))


@on_hopper
def test_one_expert_may_have_all_rows():
    given = case(300, chosen=1, of=1)
    assert torch.equal(in_one(given, 32), in_three(given, 32))


@on_hopper
@pytest.mark.parametrize(("hidden", "inner"), [(512, 192), (512, 80), (2816, 704)])
def test_products_are_the_reference_s(hidden: int, inner: int):
    given = case(24, number=16, hidden=hidden, inner=inner)
    expected = reference.feed(*given)
    error = (in_one(given, 16).float() - expected).norm() / expected.norm()
    assert error < LIMIT


@on_hopper
def test_a_graph_may_run_it_again_and_again():
    given, other = case(256, hidden=2816, inner=704), case(255, hidden=2816, inner=704)
    in_one(given, 32)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = in_one(given, 32)
    for ids in (given.ids, given.ids.flip(0), other.ids.repeat(2, 1)[:256]):
        given.ids.copy_(ids)
        expected = in_three(given, 32)
        for _ in range(20):
            graph.replay()
        assert torch.equal(found, expected)


@on_hopper
@pytest.mark.parametrize(
    ("hidden", "inner", "block"),
    [
        (500, 192, 16),  # a turn would end behind a row
        (512, 72, 16),  # a row of the second product's weights is no whole 16 bytes
        (512, 272, 16),  # its rows do not fit where the first product's lie
        (8192, 704, 32),  # no room for weights
    ],
)
def test_other_sizes_are_left_to_three_launches(hidden: int, inner: int, block: int):
    given = case(4, number=8, hidden=hidden, inner=inner)
    assert not experts.one_launch(given.experts_in, given.experts_out, block)


def test_other_devices_are_left_to_three_launches():
    table = torch.zeros(2, 2 * 128, 512).to(FP8)
    assert not experts.one_launch(table, table[:, :128].transpose(1, 2), 16)
