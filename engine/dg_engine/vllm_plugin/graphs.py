"""Captured graphs for one request alone, beside those that are captured for as many as may run.

A graph that is made for sixteen requests launches the blocks of all sixteen in every layer, and a
line at the cursor is one. vLLM 0.26 captures mixed batches for the most requests only.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import dataclasses
from typing import Any

MOST_TOKENS = 512
"""Of a lone request's batch: a canvas, or the end of a prompt. Longer ones are not short of time
for a launch."""


def capture_lone_requests() -> None:
    """Let vLLM capture every batch of ours once more for one request; idempotent.

    A release that is built otherwise is left as it is: it runs one request as it runs several.
    """
    try:
        from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager
    except ImportError:
        return
    prepare: Any = getattr(CudaGraphManager, "_init_candidates", None)
    if prepare is None or getattr(prepare, "lone_requests", False):
        return

    def with_lone_requests(manager: Any) -> None:
        prepare(manager)
        add_lone_requests(manager)

    with_lone_requests.lone_requests = True
    CudaGraphManager._init_candidates = with_lone_requests


def add_lone_requests(manager: Any) -> None:
    """Put a batch of one request in front of each batch of several that it can stand for."""
    candidates: Any = getattr(manager, "_candidates", None)
    captured: Any = getattr(manager, "_capture_descs", None)
    if candidates is None or captured is None:
        return
    lone: dict[int, Any] = {}
    for several in {id(found): found for found in candidates.values()}.values():
        first = several[0]
        if (
            first.uniform_token_count is None
            and (first.num_reqs or 0) > 1
            and (first.num_tokens <= MOST_TOKENS)
        ):
            lone[id(first)] = dataclasses.replace(first, num_reqs=1)
            several.insert(0, lone[id(first)])
    for mode, described in captured.items():
        captured[mode] = [
            one
            for each in described
            for one in ([lone[id(each)], each] if id(each) in lone else [each])
        ]
