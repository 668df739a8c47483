"""What a replay counted, and the figures that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from dg_lsp.bench.score import quantile

STAGE_ORDER = (
    "receive", "wait", "prompt", "tokenise", "queue", "encode", "causal", "steps", "judge",
    "suggest", "return", "answer",
)  # fmt: skip
"""From the key to the answer; `receive` is until the server works on it, `return` from the
finished text to the client, `answer` the whole. The others are the server's and the engine's."""


class Tally(msgspec.Struct):
    """Counts over one session, or over several added up."""

    keys: int = 0
    """Changes that the author made by hand."""
    typed_chars: int = 0
    asked: int = 0
    """Requests: one after each change, accepted suggestions among them."""
    shown: int = 0
    """Answers with a text that came before the author went on."""
    kept: int = 0
    """Suggestions that the author took."""
    kept_chars: int = 0
    saved_keys: int = 0
    """Recorded keys that taken suggestions made needless, errors and backspaces among them."""
    overtaken: int = 0
    """Requests that the author's next key, or a jump, overtook before an answer came."""
    late: int = 0
    """Texts that were answered to a request after it was overtaken."""
    stale: int = 0
    """Answers that do not fit the version they say, or the newest one. None may be."""
    repeats: int = 0
    """Shown texts that end with what follows the cursor anyway."""
    typed_through: int = 0
    """Keys that agreed with the text shown, which more than the key was left of."""
    flickers: int = 0
    """Answers to those keys that were another text than the rest of the one shown."""
    jobs: int = 0
    """Canvas jobs for requests."""
    engine_free: int = 0
    """Shown texts that no canvas job was run for while they were asked for."""
    forwards: int = 0
    prefetch_jobs: int = 0
    prefetch_forwards: int = 0
    """What the server did for suggestions that were not asked for yet, beside the above."""
    unanswered: int = 0
    """Requests without exactly one response. None may be."""
    silences: dict[str, int] = {}
    """Why nothing was shown, by reason."""
    ms: dict[str, list[float]] = {}
    """Milliseconds of every answer that was not overtaken, by stage."""
    faults: list[str] = []
    """What was stale or unanswered, for people."""

    def silent(self, reason: str) -> None:
        """Count an answer without a text."""
        self.silences[reason] = self.silences.get(reason, 0) + 1

    def spent(self, stage: str, ms: float) -> None:
        """Note the milliseconds of one stage of one answer."""
        self.ms.setdefault(stage, []).append(ms)


def total_of(tallies: Iterable[Tally]) -> Tally:
    """Several tallies as one."""
    whole = Tally()
    silences: Counter[str] = Counter()
    for tally in tallies:
        for name in tally.__struct_fields__:
            value = getattr(tally, name)
            if isinstance(value, int):
                setattr(whole, name, getattr(whole, name) + value)
        silences.update(tally.silences)
        whole.faults += tally.faults
        for stage, values in tally.ms.items():
            whole.ms.setdefault(stage, []).extend(values)
    whole.silences = dict(silences.most_common())
    return whole


def summary(tally: Tally) -> dict[str, object]:
    """The figures as one JSON object: the counts, shares, and quantiles by stage."""
    counts = {
        name: value
        for name in tally.__struct_fields__
        if isinstance(value := getattr(tally, name), int)
    }
    return {
        **counts,
        "forwards_per_key": round(_share(tally.forwards, tally.keys), 2),
        "shown_share": round(_share(tally.shown, tally.asked), 4),
        "kept_share": round(_share(tally.kept, tally.shown), 4),
        "silences": tally.silences,
        "faults": tally.faults,
        "ms": {
            stage: {
                "count": len(tally.ms[stage]),
                "p50": round(quantile(tally.ms[stage], 0.5), 2),
                "p90": round(quantile(tally.ms[stage], 0.9), 2),
            }
            for stage in _stages(tally)
        },
    }


def markdown(tally: Tally) -> str:
    """The figures as tables."""
    rows = [
        ("keys", str(tally.keys)),
        ("requests", str(tally.asked)),
        ("shown", f"{tally.shown} ({_share(tally.shown, tally.asked):.0%} of the requests)"),
        ("kept", f"{tally.kept} ({_share(tally.kept, tally.shown):.0%} of those shown)"),
        ("characters kept", f"{tally.kept_chars} beside {tally.typed_chars} typed"),
        ("keys saved", str(tally.saved_keys)),
        ("stale", str(tally.stale)),
        ("repeats what follows", str(tally.repeats)),
        ("overtaken by the next key", str(tally.overtaken)),
        ("answered late", str(tally.late)),
        ("typed through", str(tally.typed_through)),
        ("replaced while typed through", str(tally.flickers)),
        ("shown without the engine", str(tally.engine_free)),
        ("canvas jobs", str(tally.jobs)),
        ("forwards per key", f"{_share(tally.forwards, tally.keys):.1f}"),
        ("prefetching jobs", str(tally.prefetch_jobs)),
        ("prefetching forwards per key", f"{_share(tally.prefetch_forwards, tally.keys):.1f}"),
        ("requests not answered exactly once", str(tally.unanswered)),
    ]
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    lines += ["", "| stage | answers | p50 ms | p90 ms |", "|---|---|---|---|"]
    for stage in _stages(tally):
        values = tally.ms[stage]
        half, most = quantile(values, 0.5), quantile(values, 0.9)
        lines.append(f"| {stage} | {len(values)} | {half:.1f} | {most:.1f} |")
    if tally.silences:
        lines += ["", "| why nothing was shown | times |", "|---|---|"]
        lines += [f"| {reason} | {count} |" for reason, count in tally.silences.items()]
    if tally.faults:
        lines += ["", "Faults:", *(f"- {fault}" for fault in tally.faults)]
    return "\n".join(lines)


def _stages(tally: Tally) -> list[str]:
    known = [stage for stage in STAGE_ORDER if stage in tally.ms]
    return known + sorted(tally.ms.keys() - set(STAGE_ORDER))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
