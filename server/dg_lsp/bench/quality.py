"""What came of a model on held-out holes: a digest, and one object for scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dg_lsp.bench.drive import Plan
from dg_lsp.bench.figures import Digest, digest_of, figures_of
from dg_lsp.bench.machine import machine
from dg_lsp.bench.outcome import Outcome


def digest_of_plan(
    plan: Plan, results: Mapping[str, Sequence[Outcome]], *, bench: str, note: str
) -> Digest:
    """The figures of a run that followed `plan`."""
    return digest_of(
        results,
        bench=bench,
        model=plan.model.name,
        twin=plan.twin.name if plan.twin else None,
        machine=machine(),
        threads=plan.threads,
        processes=plan.processes,
        note=note,
    )


def summary(digest: Digest, results: Mapping[str, Sequence[Outcome]]) -> dict[str, object]:
    """The digest, and by method the figures over all kinds with every outcome, for scripts."""
    return {
        "model": digest.model,
        "digest": msgspec.to_builtins(digest),
        "methods": {
            name: {
                **msgspec.to_builtins(figures_of(outcomes)),
                "outcomes": [msgspec.to_builtins(o) for o in outcomes],
            }
            for name, outcomes in results.items()
        },
    }
