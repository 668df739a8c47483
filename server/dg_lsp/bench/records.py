"""What a measured server tells, and under which names."""

from __future__ import annotations

import msgspec

JOB, COMPLETION, LAG = "bench/job", "bench/completion", "bench/lag"


class JobRecord(msgspec.Struct, frozen=True):
    """One job from its submission to its end."""

    started: float
    ended: float
    done: str
    forwards: int
    prefetch: bool
    """Whether it ran for a suggestion that nobody had asked for yet."""


class CompletionRecord(msgspec.Struct, frozen=True):
    """One completion that was not given up."""

    started: float
    ended: float
    reason: str
    ms: dict[str, float]


class LagRecord(msgspec.Struct, frozen=True):
    """How much later than asked the event loop came back, in milliseconds."""

    ms: list[float]
    own_ms: list[float] = []
    """The same without the time that the loop's thread was ready and had no processor, which other
    work of the machine takes; empty where the system does not tell."""
