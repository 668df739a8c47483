"""Self-conditioning is the same whether PyTorch joins its operations or not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from dg_engine.vllm_plugin.conditioning import Conditioning
from dg_engine.vllm_plugin.states import CanvasStates, Phase, Whole
from torch._dynamo.exc import TorchDynamoException

SLOTS, LENGTH, HIDDEN, INNER = 3, 6, 16, 24
CPU = torch.device("cpu")


def conditioning_over(states: CanvasStates) -> Conditioning:
    """With random weights, the same at every call."""
    chance = torch.Generator().manual_seed(2)

    def linear(columns: int, depth: int) -> Any:
        return SimpleNamespace(weight=torch.randn(columns, depth, generator=chance) / depth**0.5)

    weight = torch.rand(HIDDEN, generator=chance)
    module = SimpleNamespace(
        pre_norm=SimpleNamespace(weight=weight, has_weight=True, variance_epsilon=1e-6),
        post_norm=SimpleNamespace(has_weight=False, variance_epsilon=1e-6),
        gate_proj=linear(INNER, HIDDEN), up_proj=linear(INNER, HIDDEN),
        down_proj=linear(HIDDEN, INNER),
    )  # fmt: skip
    return Conditioning(states, module)


@pytest.fixture
def states() -> CanvasStates:
    """Slot 1 denoises, slot 0 does not yet."""
    states = CanvasStates(SLOTS, LENGTH, HIDDEN, vocab_size=50, device=CPU, dtype=torch.float32)
    states.conditioning.normal_(generator=torch.Generator().manual_seed(1))
    states.whole[:, Whole.PHASE] = torch.tensor([Phase.PREFILL, Phase.DENOISE, Phase.PREFILL])
    return states


@torch.inference_mode()
def test_joined_operations_find_the_same_for_any_number_of_rows(states: CanvasStates):
    plain, joined = conditioning_over(states), conditioning_over(states)
    joined.compile("aot_eager")
    before = states.copied()
    joined.rehearse()
    assert all(map(torch.equal, states.copied(), before))
    for count in (1, 2, 5):
        rows, places = torch.arange(count) + 2, torch.arange(count)
        for slot in (0, 1):
            given = torch.randn(9, HIDDEN)
            found, expected = given.clone(), given.clone()
            joined(found, rows, torch.full((count,), slot), places)
            plain(expected, rows, torch.full((count,), slot), places)
            torch.testing.assert_close(found, expected)
            assert torch.equal(found[:2], given[:2])
            changed = not torch.equal(found[2 : 2 + count], given[2 : 2 + count])
            assert changed == (slot == 1)


@torch.inference_mode()
def test_what_cannot_be_joined_is_left_as_it_is(states: CanvasStates):
    conditioning = conditioning_over(states)

    def refuse(*_: Any) -> Any:
        raise NotImplementedError("too old a chip")

    conditioning.compile(refuse)
    with pytest.raises(TorchDynamoException, match="too old a chip"):
        conditioning.rehearse()
    conditioning.leave_eager()
    conditioning.rehearse()
