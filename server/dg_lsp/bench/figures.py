"""What a run counted: figures by kind and method, small enough to be kept beside the results."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dg_lsp.bench.curve import ONE_LINE, SIGNALS, Curve, curve_of
from dg_lsp.bench.outcome import Outcome
from dg_lsp.bench.score import quantile

GROUPS = {
    "one line": ONE_LINE,
    "several lines": ("lines",),
    "span": ("span",),
    "two at once": ("two",),
    "quiet": ("quiet",),
}
"""What stands in one table; kinds that are not named here are groups of their own."""


class Figures(msgspec.Struct, frozen=True):
    """One method on one group of holes; shares from 0 to 1."""

    holes: int
    exact: float
    by_kind: dict[str, float]
    """Exact share of each kind of the group."""
    right: float
    """Share of single holes that are exact; differs from `exact` for two at once."""
    similarity: float
    shown: float
    """Share with a text that is not empty."""
    repeats_suffix: float
    """Share of those shown."""
    parses: float
    parses_of: int
    """How many of the holes stand in a program that parses with the true text."""
    steps: float
    forwards: float
    ms_p50: float
    ms_p90: float
    passed: float | None = None
    """Share whose program passed its tests."""


class WarmFigures(msgspec.Struct, frozen=True):
    """Warm starts after so many typed characters; all but `agrees` over those that agree."""

    holes: int
    agrees: float
    warm_forwards: float
    cold_forwards: float
    """Medians, as are the times."""
    warm_ms: float
    cold_ms: float
    warm_exact: float
    cold_exact: float
    same_as_before: float
    same_as_cold: float


class Digest(msgspec.Struct, frozen=True):
    """A run without its texts."""

    bench: str
    model: str
    twin: str | None
    machine: str
    threads: int | None
    processes: int
    note: str
    """How the holes were chosen, one sentence."""
    groups: dict[str, dict[str, Figures]]
    """By group of holes, then by method."""
    warm: dict[str, WarmFigures]
    curves: dict[str, list[Curve]]
    """By method, one curve for each signal."""

    @property
    def times_compare(self) -> bool:
        """Whether one engine had the machine to itself."""
        return self.processes == 1


def groups_of(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes by group, in the order of GROUPS."""
    group_of = {kind: group for group, kinds in GROUPS.items() for kind in kinds}
    found: dict[str, list[Outcome]] = {group: [] for group in GROUPS}
    for outcome in outcomes:
        found.setdefault(group_of.get(outcome.kind, outcome.kind), []).append(outcome)
    return {group: listed for group, listed in found.items() if listed}


def figures_of(outcomes: Sequence[Outcome]) -> Figures:
    """Count the outcomes of one method."""
    kinds = list(dict.fromkeys(o.kind for o in outcomes))
    parsed = [o.parses for o in outcomes if o.parses is not None]
    passed = [o.passed for o in outcomes if o.passed is not None]
    ms = [o.ms for o in outcomes]
    return Figures(
        holes=len(outcomes),
        exact=share(o.exact for o in outcomes),
        by_kind={kind: share(o.exact for o in outcomes if o.kind == kind) for kind in kinds},
        right=mean(o.right for o in outcomes),
        similarity=mean(o.similarity for o in outcomes),
        shown=share(o.is_shown for o in outcomes),
        repeats_suffix=share(o.repeats_suffix for o in outcomes if o.is_shown),
        parses=share(parsed),
        parses_of=len(parsed),
        steps=mean(o.steps for o in outcomes),
        forwards=mean(o.forwards for o in outcomes),
        ms_p50=quantile(ms or [0.0], 0.5),
        ms_p90=quantile(ms or [0.0], 0.9),
        passed=share(passed) if passed else None,
    )


def warm_of(outcomes: Sequence[Outcome]) -> WarmFigures | None:
    """Count warm starts; None where there are none."""
    found = [(o, o.warm) for o in outcomes if o.warm is not None]
    agreeing = [(o, warm) for o, warm in found if warm.agrees]
    if not agreeing:
        return None
    return WarmFigures(
        holes=len(found),
        agrees=len(agreeing) / len(found),
        warm_forwards=quantile([o.forwards for o, _ in agreeing], 0.5),
        cold_forwards=quantile([warm.cold_forwards for _, warm in agreeing], 0.5),
        warm_ms=quantile([o.ms for o, _ in agreeing], 0.5),
        cold_ms=quantile([warm.cold_ms for _, warm in agreeing], 0.5),
        warm_exact=share(o.exact for o, _ in agreeing),
        cold_exact=share(warm.cold_exact for _, warm in agreeing),
        same_as_before=share(warm.same_as_before for _, warm in agreeing),
        same_as_cold=share(warm.same_as_cold for _, warm in agreeing),
    )


def digest_of(
    results: Mapping[str, Sequence[Outcome]],
    *,
    bench: str,
    model: str,
    twin: str | None,
    machine: str,
    threads: int | None,
    processes: int,
    note: str,
) -> Digest:
    """The figures of a run."""
    groups: dict[str, dict[str, Figures]] = {}
    warm: dict[str, WarmFigures] = {}
    curves: dict[str, list[Curve]] = {}
    for name, outcomes in results.items():
        if (warmed := warm_of(outcomes)) is not None:
            warm[name] = warmed
            continue
        for group, listed in groups_of(outcomes).items():
            groups.setdefault(group, {})[name] = figures_of(listed)
        drawn = [curve for signal in SIGNALS if (curve := curve_of(outcomes, signal))]
        if drawn:
            curves[name] = drawn
    order = [*GROUPS, *groups]
    groups = {group: groups[group] for group in dict.fromkeys(order) if group in groups}
    return Digest(bench, model, twin, machine, threads, processes, note, groups, warm, curves)


def share(values: Iterable[bool]) -> float:
    """How many are true, from 0 to 1; 0 of none."""
    return mean(map(float, values))


def mean(values: Iterable[float]) -> float:
    """The mean, 0 of none."""
    listed = list(values)
    return statistics.fmean(listed) if listed else 0.0
