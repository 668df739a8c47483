"""Tensors as typed Python lists; PyTorch leaves the type of `tolist` open."""

from __future__ import annotations

from typing import cast

from torch import Tensor


def ints(tensor: Tensor) -> list[int]:
    """[n] of any integer type."""
    return cast("list[int]", tensor.tolist())  # pyright: ignore[reportUnknownMemberType]


def floats(tensor: Tensor) -> list[float]:
    """[n] of any floating type."""
    return cast("list[float]", tensor.tolist())  # pyright: ignore[reportUnknownMemberType]


def int_rows(tensor: Tensor) -> list[list[int]]:
    """[rows, n] of any integer type."""
    return cast("list[list[int]]", tensor.tolist())  # pyright: ignore[reportUnknownMemberType]


def float_rows(tensor: Tensor) -> list[list[float]]:
    """[rows, n] of any floating type."""
    return cast("list[list[float]]", tensor.tolist())  # pyright: ignore[reportUnknownMemberType]
