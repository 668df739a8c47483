"""Figures of next edits: counted by kind of case and by where proposals came from."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from dg_lsp.bench.next_edit import Outcome
from dg_lsp.bench.next_edits import KINDS
from dg_lsp.next_edit.proposal import Origin

WAYS = {
    "server": "the server: certain without the model, or the model agrees",
    "text": "without the model: only what is certain",
    "unasked": "the model not asked: what it would be asked about is shown",
    "twice": "the server, after the author made two of the edits",
    "silent": "without the model and without scopes, no diagnostics told",
    "told": "without the model and without scopes, told what another server says",
    "told with scopes": "without the model, with scopes, told what another server says",
}
"""Names of what is measured."""


def figures(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
    """Counts of every way, by kind of case and by origin."""
    return {
        way: {
            "kinds": {kind: _counts([o for o in found if o.kind == kind]) for kind in KINDS},
            "origins": {str(origin): _of_origin(found, origin) for origin in Origin},
            "ms": _times(found),
        }
        for way, found in outcomes.items()
    }


def _counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    right = sum(shown.right for o in outcomes for shown in o.shown)
    count = sum(len(o.shown) for o in outcomes)
    return {
        "cases": len(outcomes),
        "places": sum(o.places for o in outcomes),
        "shown": count,
        "right": right,
        "wrong": count - right,
        "on_the_way": sum(shown.on_the_way for o in outcomes for shown in o.shown),
        "missed": sum(o.missed for o in outcomes),
        "silent": sum(not o.shown for o in outcomes),
    }


def _of_origin(outcomes: Sequence[Outcome], origin: Origin) -> dict[str, int]:
    shown = [shown for o in outcomes for shown in o.shown if shown.origin is origin]
    right = sum(one.right for one in shown)
    return {"shown": len(shown), "right": right, "wrong": len(shown) - right}


def _times(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Median milliseconds to a proposal by origin, and to silence."""
    found = {
        str(origin): [s.ms for o in outcomes for s in o.shown if s.origin is origin]
        for origin in Origin
    }
    found["silence"] = [o.silent_ms for o in outcomes if o.silent_ms]
    return {name: round(statistics.median(ms), 1) for name, ms in found.items() if ms}


def markdown(result: Mapping[str, Any]) -> str:
    """The tables of a run."""
    parts = [f"{result['note']}"]
    for way, found in result["ways"].items():
        parts.append(f"**{WAYS[way].capitalize()}**")
        rows = [
            "| kind | cases | lines left to do | shown | right | wrong | of these, on the way "
            "| missed | silent cases |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for kind, counts in found["kinds"].items():
            if counts["cases"]:
                rows.append(f"| {kind} | {' | '.join(str(n) for n in counts.values())} |")
        parts.append("\n".join(rows))
        shown = [
            f"{name}: {c['right']} right, {c['wrong']} wrong"
            for name, c in found["origins"].items()
            if c["shown"]
        ]
        times = [f"{name} {ms:g}" for name, ms in found["ms"].items()]
        parts.append(
            f"By origin: {'; '.join(shown) or 'nothing'}. "
            f"Median milliseconds to an answer: {', '.join(times)}."
        )
    return "\n\n".join(parts) + "\n"
