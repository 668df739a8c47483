"""Names that exist and cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def nothing(name: str) -> Callable[..., Any]:
    """A function in place of one that is not here."""
    if name.startswith("__"):
        raise AttributeError(name)

    def unusable(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"torchvision.{name} is not here: images are not part of these tests.")

    return unusable
