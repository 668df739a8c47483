"""Small loaded engines and jobs for tests."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
from dg_engine.job import CanvasJob, Role, Rule
from dg_engine.loader import Loaded, load

from tests.checkpoints import write_checkpoint


@lru_cache
def tiny_checkpoint() -> Path:
    """A random checkpoint with experts and a window that short prompts pass; made once."""
    folder = Path(mkdtemp(prefix="dg-tiny-random-"))
    write_checkpoint(folder, num_experts=4, top_k_experts=2, sliding_window=24)
    return folder


def load_tiny(**options: Any) -> Loaded:
    """The random checkpoint in float32 on the CPU."""
    return load(tiny_checkpoint(), device=torch.device("cpu"), dtype=torch.float32, **options)


def job(**fields: Any) -> CanvasJob:
    """A job with eight holes and eight pins behind them, unless said otherwise."""
    values: dict[str, Any] = {
        "id": "a",
        "prompt": list(range(20, 50)),
        "canvas": [0] * 8 + list(range(60, 68)),
        "roles": bytes([Role.HOLE] * 8 + [Role.PIN] * 8),
        "rule": Rule.TOP_K,
        "max_steps": 3,
        "seed": 1,
    }
    return CanvasJob(**{**values, **fields})


def solve(loaded: Loaded, canvas_job: CanvasJob, submitted: float | None = None) -> list:
    """All frames of a job."""
    clock = loaded.solver.clock
    with torch.inference_mode():
        frames = loaded.solver.run(canvas_job, clock() if submitted is None else submitted)
        return [frame for frame in frames if frame is not None]
