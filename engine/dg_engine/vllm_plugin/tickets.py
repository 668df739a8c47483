"""Counters by which programs of a launch learn that they are the last of a tile; see dg_kernels."""

from __future__ import annotations

import torch
from torch import Tensor

COUNT = 8192
"""More tiles than any batch has whose work is shared out."""

_made: dict[tuple[torch.device, str], Tensor] = {}


def tickets(device: torch.device, lane: str) -> Tensor:
    """int32 zeros that the work of one lane leaves as zeros; two lanes may run at the same time."""
    key = (device, lane)
    if key not in _made:
        # A graph's own memory would be given to another graph.
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            raise RuntimeError(f"The tickets of {lane} must exist before a graph is captured.")
        _made[key] = torch.zeros(COUNT, dtype=torch.int32, device=device)
    return _made[key]
