"""Warm starts: the question again after some characters of the true text were typed."""

from __future__ import annotations

import msgspec

from dg_lsp.bench.cases import Solve, Subject, ask, case_of, filled
from dg_lsp.bench.holes import Hole
from dg_lsp.bench.outcome import Filled, Warm, is_exact
from dg_lsp.shown.warm import warm_job


def after(count: int) -> Solve:
    """Ask, type `count` characters of the true text, and go on from the first answer.

    The cold job at the same place is run too, to be compared with. None for holes that the
    characters fill.
    """

    async def solve(subject: Subject, hole: Hole) -> Filled | None:
        characters, left = hole.middle[:count], hole.middle[count:]
        if not left.strip():
            return None
        first = case_of(hole, subject)
        earlier = (await ask(subject, first, first.job)).text
        there = msgspec.structs.replace(hole, prefix=hole.prefix + characters, middle=left)
        case = case_of(there, subject)
        cold = await ask(subject, case, case.job)
        rest = earlier[count:]
        agrees = earlier.startswith(characters) and bool(rest.strip())
        answer = cold
        if agrees:
            answer = await ask(subject, case, warm_job(case.job, subject.prompts.encode(rest)))
        return msgspec.structs.replace(
            filled(subject, answer),
            typed=count,
            warm=Warm(
                agrees=agrees,
                cold_forwards=cold.forwards,
                cold_ms=cold.ms,
                cold_exact=is_exact(cold.text, left, ends_line=hole.ends_its_line),
                same_as_before=answer.text == rest,
                same_as_cold=answer.text == cold.text,
            ),
        )

    return solve
