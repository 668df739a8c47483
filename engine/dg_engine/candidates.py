"""The canvases of a job: its alternatives and raced widths as rows of one batch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dg_engine.job import CanvasJob, Role


class Row(NamedTuple):
    """One canvas: what is given, and where its hole lies."""

    given: list[int]
    roles: bytes
    start: int
    """First position that is not PIN."""
    stop: int
    """Behind the last position that is not PIN."""


class Batch(NamedTuple):
    """Rows padded to one width; padding is pinned and masked by `lengths`."""

    rows: list[Row]
    given: Tensor
    """int64 [rows, canvas]"""
    roles: Tensor
    """uint8 [rows, canvas]"""
    lengths: Tensor | None
    """int64 [rows], None when all rows fill the canvas."""
    lo: int
    hi: int
    """Columns lo to hi - 1 hold every position that is not pinned, in any row."""


def hole_of(roles: bytes) -> tuple[int, int]:
    """First position that is not PIN and the one behind the last; equal when all are pinned."""
    free = [i for i, role in enumerate(roles) if role != Role.PIN]
    return (free[0], free[-1] + 1) if free else (0, 0)


def with_hole(job: CanvasJob, ids: list[int], role: Role, canvas_length: int) -> Row:
    """The job's canvas with its hole replaced by `ids`; what stands behind moves along.

    The canvas stays as wide as the job's, or as wide as the hole needs; it is cropped at its end.
    """
    start, stop = hole_of(job.roles)
    given = job.canvas[:start] + ids + job.canvas[stop:]
    roles = job.roles[:start] + bytes([role]) * len(ids) + job.roles[stop:]
    width = min(canvas_length, max(len(job.canvas), start + len(ids)))
    given, roles = given[:width], roles[:width]
    return Row(given, roles, start, min(start + len(ids), width))


def rows_of(job: CanvasJob, canvas_length: int) -> list[Row]:
    """One row per width, or per alternative when no widths are raced."""
    if job.widths:
        return [with_hole(job, [0] * w, Role.HOLE, canvas_length) for w in job.widths]
    start, stop = hole_of(job.roles)
    return [Row(list(job.canvas), job.roles, start, stop)] * job.alternatives


def batch_of(rows: list[Row], device: torch.device) -> Batch:
    """Pad rows into tensors."""
    width = max(len(row.given) for row in rows)
    given = torch.zeros((len(rows), width), dtype=torch.int64)
    roles = torch.full((len(rows), width), int(Role.PIN), dtype=torch.uint8)
    for index, row in enumerate(rows):
        given[index, : len(row.given)] = torch.tensor(row.given)
        roles[index, : len(row.given)] = torch.tensor(list(row.roles), dtype=torch.uint8)
    sizes = [len(row.given) for row in rows]
    ragged = any(size != width for size in sizes)
    holes = [row for row in rows if row.stop > row.start]
    return Batch(
        rows,
        given.to(device),
        roles.to(device),
        torch.tensor(sizes, device=device) if ragged else None,
        min((row.start for row in holes), default=0),
        max((row.stop for row in holes), default=0),
    )
