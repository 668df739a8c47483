"""A job and what one engine made of it, as it lies in a file."""

from __future__ import annotations

import hashlib
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


class Reference(msgspec.Struct, frozen=True):
    """What a file holds."""

    weights: str
    """See weights_of."""
    solved: list[Solved]


def weights_of(model: Path) -> str:
    """Which weights a folder holds, by the digests of its files."""
    return hashlib.sha256((model / "digests.json").read_bytes()).hexdigest()


def read(model: Path, path: Path = FILE) -> list[Solved]:
    """The jobs of a file; raises SystemExit when it was made with other weights."""
    reference = msgspec.json.decode(path.read_bytes(), type=Reference)
    if reference.weights != weights_of(model):
        raise SystemExit(f"{path} is of other weights; run python -m bench.gpu.reference again.")
    return reference.solved
