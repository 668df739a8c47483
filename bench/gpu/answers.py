"""dg-tiny on this machine's vLLM beside the CPU's answers, job by job."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from dg_engine.job import Frame
from dg_engine.vllm_engine import VllmEngine, VllmOptions

from bench.gpu.report import Report
from bench.gpu.solved import Solved

MODEL = Path(__file__).resolve().parents[2] / "models" / "dg-tiny"


async def compare(
    options: VllmOptions, solved: list[Solved], report: Report, model: Path = MODEL
) -> None:
    """By kind of job, how many answers and drafts are the CPU's, and where they part."""
    engine = await VllmEngine.start(model, options)
    try:
        info = await engine.info()
        report.tell(
            f"  dg-tiny, {info.dtype} on {info.device}, "
            f"causal mode predicts: {info.causal_predicts}"
        )
        for kind in dict.fromkeys(one.kind for one in solved):
            asked = [one for one in solved if one.kind == kind]
            await report.take(kind, compared(engine, kind, asked))
    finally:
        await engine.close()


async def compared(engine: VllmEngine, kind: str, asked: list[Solved]) -> list[str]:
    """Lines on the jobs of one kind, which run at once."""
    found = await asyncio.gather(*(_frames(engine, one) for one in asked))
    pairs = [(one, frames) for one, frames in zip(asked, found, strict=True) if frames[-1].ids]
    lines: list[str] = []
    if len(pairs) < len(asked):
        reasons = {str(f[-1].done and f[-1].done.message) for f in found if not f[-1].ids}
        lines.append(f"  {kind}: {len(asked) - len(pairs)} jobs failed: {min(reasons)}")
    same = sum(frames[-1].ids[0] == one.frames[-1].ids[0] for one, frames in pairs)
    lines.append(f"  {kind}: {same} of {len(pairs)} answers are the CPU's")
    parted = [_parting(one.frames, frames) for one, frames in pairs]
    steps = Counter(place[0] for place in parted if place is not None)
    doubts = sorted(place[1] for place in parted if place is not None)
    if doubts:
        middle = doubts[len(doubts) // 2]
        by_step = ", ".join(f"{count} at step {step}" for step, count in sorted(steps.items()))
        lines.append(
            f"    drafts part in {len(doubts)} jobs ({by_step}); entropy of the first position "
            f"that differs: least {doubts[0]:.2f}, median {middle:.2f} nats"
        )
    return lines


async def _frames(engine: VllmEngine, one: Solved) -> list[Frame]:
    return [frame async for frame in engine.submit(one.job)]


def _parting(expected: list[Frame], found: list[Frame]) -> tuple[int, float] | None:
    """Step and entropy (nats, on the CPU) of the first position that differs; None if none does."""
    for one, other in zip(expected, found, strict=False):
        if not one.ids or not other.ids:
            continue
        for at, (mine, yours) in enumerate(zip(one.ids[0], other.ids[0], strict=False)):
            if mine != yours:
                return one.step, one.entropy[at] if at < len(one.entropy) else 0.0
    return None
