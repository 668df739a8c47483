"""Canvases that take their first step in the forward that reads the end of their prompt.

Behind a cached prompt the end of it is a few tokens, and a forward of few tokens takes as long as
one of a few more: nearly all of it is reading weights. The rows of the prompt's end are causal and
those of the canvas are not, which only our attention knows how to tell apart in one sequence.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dg_engine.job import MaskRule
from dg_engine.vllm_plugin.options import JOINED_CANVASES

LEADING = "dg_leading"
"""Attribute of attention metadata: how many of each sequence's first rows are causal, int32
[sequences]."""
BESIDE_CANVAS = 64
"""Tokens beside a whole canvas: the end of its prompt, which is less than two pages."""


def joins_canvases(vllm_config: Any, mask_rule: str | None) -> bool:
    """Whether the attention that is set tells rows apart, and nothing splits a sequence."""
    backend = getattr(vllm_config.attention_config.backend, "name", None)
    in_torch = (
        mask_rule == MaskRule.ANCHORED and vllm_config.device_config.device_type == "cpu"
    )  # fmt: skip
    parallel = vllm_config.parallel_config
    return (
        bool(vllm_config.additional_config.get(JOINED_CANVASES, True))
        and (backend == "CUSTOM" or in_torch)
        and parallel.pipeline_parallel_size == 1
        and parallel.decode_context_parallel_size == 1
    )


class LeadingRows:
    """How many rows in front of each canvas of a batch belong to its prompt."""

    def __init__(self, most: int, device: torch.device) -> None:
        self._rows = torch.zeros(most, dtype=torch.int32, device=device)
        """By place in the batch; graphs are captured with it."""
        self._any = False

    def find(self, input_batch: Any) -> list[tuple[int, int, slice]]:
        """Slot, canvas width and rows of every canvas that stands behind its prompt's end."""
        count = input_batch.num_reqs
        if input_batch.num_draft_tokens == 0:
            self._clear()
            return []
        widths = np.diff(input_batch.cu_num_logits_np[: count + 1])
        tails = np.where(widths > 0, input_batch.num_scheduled_tokens[:count] - widths, 0)
        if not tails.any():
            self._clear()
            return []
        rows = torch.from_numpy(tails.astype(np.int32))
        if self._rows.is_cuda:
            rows = rows.pin_memory()
        self._rows.zero_()
        self._rows[:count].copy_(rows, non_blocking=True)
        self._any = True
        found: list[tuple[int, int, slice]] = []
        for place in np.flatnonzero(tails).tolist():
            width, end = int(widths[place]), int(input_batch.query_start_loc_np[place + 1])
            slot = int(input_batch.idx_mapping_np[place])
            found.append((slot, width, slice(end - width, end)))
        return found

    def tell(self, metadata: dict[str, Any]) -> None:
        """Put them where the attention looks."""
        for one in {id(each): each for each in metadata.values()}.values():
            setattr(one, LEADING, self._rows[: len(one.seq_lens)])

    def _clear(self) -> None:
        if self._any:
            self._rows.zero_()
            self._any = False


def join(scheduler: Any, output: Any, widths: dict[str, int]) -> list[str]:
    """Have new requests whose prompt ends in this step take their canvas along; returns which.

    `widths` are the canvases of the requests that may. Counts and blocks become those of a request
    that was planned with so many drafts, before vLLM's scheduler notes what it has planned.
    """
    joined: list[str] = []
    for new in output.scheduled_new_reqs:
        width = widths.get(new.req_id, 0)
        request = scheduler.requests[new.req_id]
        tail = output.num_scheduled_tokens[new.req_id]
        planned = output.total_num_scheduled_tokens + width
        if (
            not width
            or request.num_computed_tokens + tail != request.num_tokens
            or planned > scheduler.max_num_scheduled_tokens
            or scheduler.kv_cache_manager.allocate_slots(request, tail + width) is None
        ):
            continue
        new.block_ids = scheduler.kv_cache_manager.get_block_ids(new.req_id)
        output.num_scheduled_tokens[new.req_id] = tail + width
        output.scheduled_spec_decode_tokens[new.req_id] = [-1] * width
        output.total_num_scheduled_tokens = planned
        joined.append(new.req_id)
    if joined and getattr(scheduler, "needs_kv_cache_zeroing", False):
        fresh = scheduler.kv_cache_manager.take_new_block_ids()
        output.new_block_ids_to_zero = [*(output.new_block_ids_to_zero or []), *fresh] or None
    return joined
