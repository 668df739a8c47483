"""What the releases hand to the sampler where they differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

import torch
from dg_engine.vllm_plugin.model_state import _Sampler
from dg_engine.vllm_plugin.states import Phase, Whole

from tests.test_canvas_sampler import LENGTH, SLOTS, VOCAB, Device, request


def prompt_batch(rows: int, name: str = "known") -> Any:
    """The batch of one prompt; 0.26 counts a row of logits for it, later releases none."""
    return SimpleNamespace(
        num_reqs=1,
        req_ids=[name],
        num_draft_tokens=0,
        idx_mapping=torch.tensor([2]),
        idx_mapping_np=np.array([2]),
        cu_num_logits=torch.tensor([0, rows]),
        cu_num_logits_np=np.array([0, rows]),
        expanded_idx_mapping=torch.full((rows,), 2),
        expanded_local_pos=torch.zeros(rows, dtype=torch.int32),
        seq_lens=torch.tensor([9]),
    )


def sampler(device: Device) -> _Sampler:
    lengths = torch.zeros(SLOTS, dtype=torch.int32)
    lengths[2] = 9
    req_states = SimpleNamespace(
        prefill_len=SimpleNamespace(gpu=lengths),
        draft_tokens=torch.zeros(SLOTS, LENGTH, dtype=torch.int64),
    )
    state: Any = SimpleNamespace(
        states=device.states,
        knows=lambda name: name == "known",
        conditioning=SimpleNamespace(rehearse=lambda: None),
    )
    return _Sampler(state, req_states, device.sampler)


@pytest.mark.parametrize("rows", [0, 1], ids=["later", "0.26"])
def test_a_prompt_that_ends_begins_its_canvas_whatever_rows_of_logits_come_with_it(rows: int):
    device = Device()
    device.states.add(2, request("hhhh"))
    found = sampler(device)(torch.zeros(rows, VOCAB), prompt_batch(rows))
    assert device.states.whole[2, Whole.PHASE] == Phase.DENOISE
    assert found.logprobs_tensors is None
    assert found.num_sampled.tolist() == found.num_rejected.tolist() == [0]


def test_a_batch_that_only_measures_memory_changes_nothing():
    device = Device()
    device.states.add(2, request("hhhh"))
    before = device.states.whole.clone()
    sampler(device)(torch.zeros(1, VOCAB), prompt_batch(1, "stand-in"))
    assert torch.equal(device.states.whole, before)
    assert not device.states.conditioning.any()
