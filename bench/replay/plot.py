"""How many answers came within which time, drawn where matplotlib is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dg_lsp.bench.tally import Tally


def draw(runs: Mapping[str, Tally], path: Path) -> bool:
    """Write an SVG with one curve for each run; whether it could be drawn."""
    drawn = {name: sorted(tally.ms.get("answer", [])) for name, tally in runs.items()}
    if importlib.util.find_spec("matplotlib") is None or not any(drawn.values()):
        return False
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    # The same figures give the same bytes.
    matplotlib.rcParams["svg.hashsalt"] = "replay"
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, values in drawn.items():
        shares = [(number + 1) / len(values) for number in range(len(values))]
        axes.step(values, shares, where="post", label=name)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds from key to answer")
    axes.set_ylabel("share of the answers")
    axes.set_ylim(0, 1)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    return True
