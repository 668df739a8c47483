"""Where a figure was measured, in one line."""

from __future__ import annotations

import os
import platform
from importlib import metadata


def machine() -> str:
    """Processor kind and count, Python and torch versions; no names, no paths."""
    return (
        f"{platform.machine()} with {os.cpu_count()} processors, "
        f"torch {metadata.version('torch')}, Python {platform.python_version()}"
    )
