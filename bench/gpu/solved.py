"""A job and what one engine made of it, as it lies in a file."""

from __future__ import annotations

from pathlib import Path

import msgspec
from dg_engine.job import CanvasJob, Frame

FILE = Path(__file__).parent / "reference.json"
"""The CPU's answers; bench.gpu.reference writes them."""


class Solved(msgspec.Struct, frozen=True):
    """`kind` names how the job's hole is filled."""

    kind: str
    job: CanvasJob
    frames: list[Frame]


def read(path: Path = FILE) -> list[Solved]:
    """All that a file holds."""
    return msgspec.json.decode(path.read_bytes(), type=list[Solved])
