"""A job that goes on from an earlier answer instead of starting from noise.

What was typed stands in the prompt, where nothing can change it, and the rest of the answer is
the seed: its text is tokenised anew, so a cursor inside a token of the earlier answer is no
special case. One canvas takes the place of the race, for its length is known.
"""

from __future__ import annotations

import msgspec
from dg_engine.job import CanvasJob, Role

WARM_STEPS = 1
"""More steps renoise the seed and gained nothing (bench/results/typing.md)."""


def warm_job(cold: CanvasJob, seeds: list[int]) -> CanvasJob:
    """The job that keeps what it can of `seeds` where `cold` would start from noise."""
    pins = [i for i, role in zip(cold.canvas, cold.roles, strict=True) if role == Role.PIN]
    width = max(len(cold.canvas), len(seeds))
    roles = bytes([Role.SEED]) * len(seeds) + bytes([Role.PIN]) * len(pins)
    return msgspec.structs.replace(
        cold,
        canvas=[*seeds, *pins][:width],
        roles=roles[:width],
        alternatives=1,
        widths=[],
        causal_candidate=False,
        keep_seed_steps=WARM_STEPS,
        max_steps=WARM_STEPS,
    )
