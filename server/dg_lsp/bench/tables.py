"""A run's figures as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dg_lsp.bench.curve import QUIET_SILENT, Curve
from dg_lsp.bench.figures import Digest, Figures, WarmFigures

Column = tuple[str, Callable[[Figures], str]]


def markdown(digest: Digest, level: int = 2) -> str:
    """Where and how it was measured, and a table for each group of holes below its heading."""
    head = "#" * level
    parts = [where(digest)]
    for group, methods in digest.groups.items():
        most = max(figures.holes for figures in methods.values())
        parts += [f"{head} {group.capitalize()} ({most} holes)", group_table(group, methods)]
    if digest.warm:
        parts += [f"{head} Warm starts", warm_table(digest.warm)]
    if digest.curves:
        parts += [f"{head} When to show an answer", curve_table(digest.curves)]
    return "\n\n".join(parts)


def where(digest: Digest) -> str:
    """One paragraph on the model, the holes and the machine."""
    threads = f"{digest.threads}" if digest.threads else "its own choice of"
    twin = f", twin {digest.twin}" if digest.twin else ""
    text = (
        f"Model {digest.model}{twin}; {digest.note} Each engine on {threads} threads; "
        f"{digest.machine}."
    )
    if digest.times_compare:
        return text
    return text + (
        f" {digest.processes} engines ran side by side: **times are not comparable** "
        "with those of other runs, nor quite with each other."
    )


def group_table(group: str, methods: Mapping[str, Figures]) -> str:
    """One row for each method."""
    columns = _columns(group, methods)
    rows = [[name, *(show(figures) for _, show in columns)] for name, figures in methods.items()]
    return table(["method", *(title for title, _ in columns)], rows)


def _columns(group: str, methods: Mapping[str, Figures]) -> list[Column]:
    ends: list[Column] = [
        ("steps", lambda f: f"{f.steps:.1f}"),
        ("forwards", lambda f: f"{f.forwards:.1f}"),
        ("ms p50", lambda f: f"{f.ms_p50:.0f}"),
        ("ms p90", lambda f: f"{f.ms_p90:.0f}"),
    ]
    if group == "quiet":
        return [("silent", lambda f: f"{1 - f.shown:.1%}"), *ends]
    columns: list[Column] = []
    if any(f.passed is not None for f in methods.values()):
        columns.append(("pass@1", lambda f: "" if f.passed is None else f"{f.passed:.1%}"))
    columns.append(("exact", lambda f: f"{f.exact:.1%}"))
    kinds = list(dict.fromkeys(kind for f in methods.values() for kind in f.by_kind))
    if len(kinds) > 1:
        columns += [_of_kind(kind) for kind in kinds]
    if any(f.right != f.exact for f in methods.values()):
        columns.append(("each hole", lambda f: f"{f.right:.1%}"))
    return [
        *columns,
        ("similarity", lambda f: f"{f.similarity:.3f}"),
        ("parses", lambda f: f"{f.parses:.1%} of {f.parses_of}" if f.parses_of else ""),
        ("shown", lambda f: f"{f.shown:.1%}"),
        ("repeats suffix", lambda f: f"{f.repeats_suffix:.1%}"),
        *ends,
    ]


def _of_kind(kind: str) -> Column:
    return kind, lambda f: f"{f.by_kind[kind]:.1%}" if kind in f.by_kind else ""


def warm_table(methods: Mapping[str, WarmFigures]) -> str:
    """Warm starts; all but the share that agrees over those that agree."""
    return table(
        ["", "holes", "agrees", "forwards", "cold", "ms p50", "cold", "exact", "cold",
         "as the earlier answer", "as the cold answer"],
        [
            [name, f"{w.holes}", f"{w.agrees:.1%}", f"{w.warm_forwards:.0f}",
             f"{w.cold_forwards:.0f}", f"{w.warm_ms:.0f}", f"{w.cold_ms:.0f}",
             f"{w.warm_exact:.1%}", f"{w.cold_exact:.1%}", f"{w.same_as_before:.1%}",
             f"{w.same_as_cold:.1%}"]
            for name, w in methods.items()
        ],
    )  # fmt: skip


def curve_table(methods: Mapping[str, Sequence[Curve]]) -> str:
    """The threshold at which the quiet cases are silent, and what it costs."""
    return table(
        ["method", "confidence", "threshold", "quiet cases silent", "others shown",
         "exact among shown", "silent / shown on the other half"],
        [
            [name, curve.signal, f"{curve.chosen.threshold:.3f}",
             f"{curve.chosen.quiet_silent:.1%} of {curve.quiet}",
             f"{curve.chosen.shown:.1%} of {curve.others}", f"{curve.chosen.right:.1%}",
             f"{curve.crossed.quiet_silent:.1%} / {curve.crossed.shown:.1%}"]
            for name, curves in methods.items()
            for curve in curves
        ],
    ) + (
        f"\n\nThe threshold is the lowest at which {QUIET_SILENT:.0%} of the quiet cases are "
        "silent. `mean` is the geometric mean of the tokens' probabilities, `whole` the "
        "probability of the whole text and its end. In the last column the threshold comes from "
        "one half of the quiet cases and the counts from the other half."
    )  # fmt: skip


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
