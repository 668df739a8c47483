"""Every hook takes what vLLM 0.26 and what vLLM 0.33 call it with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

from dg_engine.vllm_plugin import compat, scheduler
from dg_engine.vllm_plugin.model import CanvasDiffusionGemma
from dg_engine.vllm_plugin.model_state import CanvasModelState, _Sampler

CALLS: list[tuple[str, Callable[..., Any], int, tuple[str, ...]]] = [
    ("0.26", CanvasModelState.__init__, 4, ()),
    ("0.26", CanvasModelState.add_request, 2, ()),
    ("0.26", CanvasModelState.remove_request, 1, ()),
    ("0.26", CanvasModelState.apply_staged_writes, 0, ()),
    ("0.26", CanvasModelState.custom_sampler, 1, ()),
    ("0.26", CanvasModelState.prepare_inputs, 2, ()),
    ("0.26", CanvasModelState.prepare_attn, 6, ("for_capture",)),
    ("0.33", CanvasModelState.prepare_attn, 6, ("for_capture", "ubatch_idx")),
    ("0.26", CanvasModelState.prepare_dummy_inputs, 2, ()),
    ("0.26", CanvasModelState.postprocess_state, 3, ()),
    ("0.26", _Sampler.add_request, 3, ()),
    ("0.33", _Sampler.add_request, 2, ()),
    ("0.26", _Sampler.apply_staged_writes, 0, ()),
    ("0.26", _Sampler.__call__, 2, ()),
    ("0.33", _Sampler.__call__, 3, ()),
    ("0.26", scheduler.CanvasScheduler.schedule, 0, ()),
    ("0.33", scheduler.CanvasScheduler.schedule, 1, ()),
    ("0.33", scheduler.CanvasScheduler.schedule, 0, ("throttle_prefills",)),
    ("0.26", scheduler.CanvasScheduler._update_after_schedule, 1, ()),
    ("0.26", scheduler.CanvasScheduler.update_from_output, 2, ()),
    ("0.26", scheduler.CanvasScheduler.update_draft_token_ids, 1, ()),
    ("0.26", scheduler.CanvasScheduler.add_request, 1, ()),
    ("0.26", scheduler.CanvasScheduler._free_request, 1, ("delay_free_blocks",)),
    ("0.26", scheduler.canvas_scheduler, 0, ("vllm_config", "kv_cache_config", "block_size")),
]


@pytest.mark.parametrize(
    ("version", "hook", "positional", "named"), CALLS, ids=lambda v: getattr(v, "__qualname__", "")
)
def test_a_hook_takes_the_call(
    version: str, hook: Callable[..., Any], positional: int, named: tuple[str, ...]
):
    me = () if hook is scheduler.canvas_scheduler else (None,)
    arguments = (*me, *[None] * positional)
    inspect.signature(hook).bind(*arguments, **dict.fromkeys(named))


def test_the_model_class_names_its_state():
    assert CanvasDiffusionGemma.get_model_state_cls() is CanvasModelState


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("0.25.1", False),
        ("0.26.0", True),
        ("0.32.0+cpu", True),
        ("0.33.1", True),
        ("0.34.0", False),
        ("1.0.0", False),
        (None, False),
    ],
)
def test_a_release_outside_the_range_is_refused_with_the_range(version: str | None, fits: bool):
    refused = compat.refusal(version)
    assert (refused is None) == fits
    if refused is not None:
        assert "0.26 to 0.33" in refused
        assert "\n" not in refused


def test_scalars_that_differ_are_refused():
    import torch
    from dg_engine.vllm_plugin.model import same_scalars

    decoder = ("model.decoder.layers.3.layer_scalar", torch.tensor([1.0]))
    same = ("model.encoder.language_model.layers.3.layer_scalar", torch.tensor([1.0]))
    other = (same[0], torch.tensor([0.5]))
    assert list(same_scalars([decoder, same])) == [decoder, same]
    with pytest.raises(ValueError, match="Layer 3 has different scalars"):
        list(same_scalars([decoder, other]))


@pytest.mark.parametrize(
    ("fields", "may"),
    [
        ({"num_output_placeholders": 0}, True),
        ({"num_output_placeholders": 16}, False),
        ({"num_output_placeholders": 16, "num_stale_output_tokens": 0}, True),
    ],
)
def test_a_request_under_way_keeps_its_place_where_stale_output_is_not_counted(
    fields: dict[str, int], may: bool
):
    assert compat.can_preempt(SimpleNamespace(**fields)) is may
