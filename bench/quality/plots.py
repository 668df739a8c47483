"""Draws a run's figures as SVG; the same figures give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from dg_lsp.bench.curve import QUIET_SILENT
from dg_lsp.bench.figures import Digest

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "quality", "svg.fonttype": "none", "font.size": 9})

from matplotlib import pyplot as plt  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRONTIER, STEPS, SHOW = "quality_frontier.svg", "quality_steps.svg", "quality_show.svg"
_GROUP = "one line"
_STEPS = (1, 2, 4, 8, 16)
_METHOD = "default"


def draw(digest: Digest, times: Digest, folder: Path) -> list[str]:
    """Write the plots that a run has figures for; returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: list[str] = []
    for name, figure in (
        (FRONTIER, frontier(digest, times)),
        (STEPS, steps(digest)),
        (SHOW, show(digest)),
    ):
        if figure is not None:
            figure.savefig(folder / name, metadata={"Date": None}, bbox_inches="tight")
            plt.close(figure)
            drawn.append(name)
    return drawn


def families(methods: list[str]) -> dict[str, list[str]]:
    """Methods of one line that differ in one number only, the number left out of the name."""
    found: dict[str, list[str]] = {}
    for name in methods:
        first, _, rest = name.partition(", ")
        if name.startswith("cascade"):
            family = "cascade"
        elif rest.split(" ")[-1] in {"step", "steps"} and rest.count(" ") == 1:
            family = first
        elif name in {_METHOD, "causal line alone", "twin", "open canvas, 8 steps"}:
            family = name
        else:
            continue
        found.setdefault(family, []).append(name)
    return found


def frontier(digest: Digest, times: Digest) -> Figure | None:
    """Exact match against the median time of one line; a line joins what differs in steps."""
    exact, timed = digest.groups.get(_GROUP, {}), times.groups.get(_GROUP, {})
    both = [name for name in exact if name in timed]
    if not both:
        return None
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for family, names in families(both).items():
        places = sorted((timed[n].ms_p50, 100 * exact[n].exact) for n in names)
        mark = "*" if family == _METHOD else "o"
        axes.plot(*zip(*places, strict=True), marker=mark, markersize=6, label=family)
    note = "" if times.times_compare else f", {times.processes} engines side by side"
    axes.set_xscale("log")
    axes.set_xlabel(f"milliseconds for one line, median ({times.threads} threads{note})")
    axes.set_ylabel("exact, %")
    _finish(axes)
    return figure


def steps(digest: Digest) -> Figure | None:
    """Exact match against denoise steps, the length known."""
    figure, axes = plt.subplots(figsize=(6, 4))
    for group, methods in digest.groups.items():
        places = [
            (count, 100 * methods[name].exact)
            for count in _STEPS
            if (name := f"known length, {count} step{'s' * (count > 1)}") in methods
        ]
        if len(places) > 1:
            axes.plot(*zip(*places, strict=True), marker="o", label=group)
    if not axes.lines:
        plt.close(figure)
        return None
    axes.set_xscale("log", base=2)
    axes.set_xticks(_STEPS, [str(count) for count in _STEPS])
    axes.set_xlabel("denoise steps, length known")
    axes.set_ylabel("exact, %")
    _finish(axes)
    return figure


def show(digest: Digest) -> Figure | None:
    """What the threshold of confidence does: quiet cases silent, others shown, right if shown."""
    curves = digest.curves.get(_METHOD, [])
    if not curves:
        return None
    figure, axes = plt.subplots(figsize=(6, 4))
    for number, curve in enumerate(curves):
        points = sorted((p.quiet_silent, p.shown, p.right) for p in curve.points)
        silent = [100 * p[0] for p in points]
        colour, chosen = f"C{number}", curve.chosen
        axes.plot(
            silent, [100 * p[1] for p in points], color=colour, label=f"shown, {curve.signal}"
        )
        axes.plot(
            silent,
            [100 * p[2] for p in points],
            color=colour,
            linestyle="--",
            label=f"exact among shown, {curve.signal}",
        )
        axes.plot(
            [100 * chosen.quiet_silent],
            [100 * chosen.shown],
            color=colour,
            marker="o",
            linestyle="",
            label=f"threshold {chosen.threshold:.3f}",
        )
    axes.axvline(100 * QUIET_SILENT, color="grey", linewidth=0.8)
    axes.set_xlabel("quiet cases silent, %")
    axes.set_ylabel("share of the others, %")
    axes.set_ylim(0, 100)
    _finish(axes)
    return figure


def _finish(axes: Axes) -> None:
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
