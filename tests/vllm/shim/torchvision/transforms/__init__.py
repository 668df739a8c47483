"""Transforming images."""

from __future__ import annotations

import enum


class InterpolationMode(enum.Enum):
    """The names that transformers maps its own to."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


from torchvision.transforms import functional, v2  # noqa: E402 - they import the class above

__all__ = ["InterpolationMode", "functional", "v2"]
