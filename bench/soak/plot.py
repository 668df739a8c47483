"""Memory and descriptors over time, drawn where matplotlib is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.soak.__main__ import Sample


def draw(samples: Sequence[Sample], breaks: Sequence[tuple[float, str]], path: Path) -> bool:
    """Write an SVG; whether it could be drawn."""
    if importlib.util.find_spec("matplotlib") is None or not samples:
        return False
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "soak"  # the same figures give the same bytes
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, (memory, files) = pyplot.subplots(2, sharex=True, figsize=(8, 5))
    minutes = [sample.at / 60 for sample in samples]
    for label, field in (
        ("servers", "windows_mib"),
        ("daemon", "daemon_mib"),
        ("engine", "engine_mib"),
    ):
        memory.plot(minutes, [getattr(sample, field) for sample in samples], label=label)
    files.plot(minutes, [sample.descriptors for sample in samples])
    for at, _ in breaks:
        memory.axvline(at / 60, color="grey", alpha=0.3, linewidth=0.7)
        files.axvline(at / 60, color="grey", alpha=0.3, linewidth=0.7)
    memory.set_ylabel("MiB")
    memory.legend()
    files.set_ylabel("open descriptors")
    files.set_xlabel("minutes; grey lines: something was broken")
    for axes in (memory, files):
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
    figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    return True
