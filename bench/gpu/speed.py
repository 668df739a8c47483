"""Times on the 26B-A4B configuration with random weights: ours and upstream's in the same way."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from dg_engine.job import CanvasJob, DoneKind, Frame, Role, Rule, Stop, StopKind
from dg_engine.vllm_engine import VllmEngine

from bench.gpu.timeline import told
from bench.gpu.worker import IDLE


class Scale(NamedTuple):
    """How much is measured."""

    vocab_size: int = 262_144
    lengths: tuple[int, ...] = (512, 4096)
    """Prompt tokens."""
    canvas: int = 256
    line: int = 32
    """Canvas of a line, of which 24 positions are holes."""
    steps: int = 16
    at_once: tuple[int, ...] = (1, 2, 4, 8)
    repeats: int = 5
    editors: tuple[int, ...] = (1, 2, 4, 8, 16)
    typing_s: float = 6.0
    profile: bool = True
    """Whether the kernels of a block and a line are listed."""


REHEARSAL = Scale(8192, (40, 150), 32, 28, 2, (1, 2), 1, (1, 2), 2.0)
"""Enough to run every line of this on a CPU."""

LINE_STEPS = 4
KEY_SECONDS = 0.3
"""Mean pause between two keys of a simulated editor."""
PROFILED = 24
"""Kernels that are listed; all are written."""
Numbers = dict[str, Any]
Build = Callable[[Scale, str, list[int]], CanvasJob]
Ask = Callable[[int, list[int]], Awaitable[float]]
"""Runs request n over a prompt; returns the milliseconds to its last wanted token."""


def prompts(scale: Scale, length: int, count: int, seed: int) -> list[list[int]]:
    """Random ids, the same in every run."""
    chance = random.Random(seed)
    return [[chance.randrange(100, scale.vocab_size) for _ in range(length)] for _ in range(count)]


async def at_once(ask: Ask, tokens: int, length: int, scale: Scale, kept: Numbers) -> list[str]:
    """By concurrency: time to the last wanted token and tokens/s, prompts cached.

    The numbers are kept by how many there were.
    """
    lines: list[str] = []
    for count in scale.at_once:
        asked = prompts(scale, length, count, seed=count)
        await asyncio.gather(*(ask(n, prompt) for n, prompt in enumerate(asked)))
        times: list[float] = []
        rates: list[float] = []
        for _ in range(scale.repeats * (4 if count == 1 else 1)):
            begun = time.perf_counter()
            times += await asyncio.gather(*(ask(n, prompt) for n, prompt in enumerate(asked)))
            rates.append(count * tokens / (time.perf_counter() - begun))
        kept[str(count)] = {"tokens_s": statistics.median(rates)} | spread(times)
        lines.append(
            f"    {count} at once: {statistics.median(times):7.1f} ms "
            f"({min(times):.1f} to {max(times):.1f}), {statistics.median(rates):7.0f} tokens/s"
        )
    return lines


def spread(times: list[float]) -> Numbers:
    """Median, extremes and count, milliseconds."""
    return {
        "ms": statistics.median(times), "least": min(times), "most": max(times), "runs": len(times),
    }  # fmt: skip


def block_job(scale: Scale, name: str, prompt: list[int], steps: int | None = None) -> CanvasJob:
    """A whole canvas; random weights never settle, so it takes exactly its steps."""
    return CanvasJob(
        name,
        prompt,
        [0] * scale.canvas,
        bytes([Role.HOLE]) * scale.canvas,
        rule=Rule.ENTROPY_BOUND,
        max_steps=steps or scale.steps,
        seed=1,
    )


def line_job(scale: Scale, name: str, prompt: list[int], pin: int = 500) -> CanvasJob:
    """A line: 24 holes in front of pins, four steps."""
    pins = scale.line - 24
    return CanvasJob(
        name,
        prompt,
        [0] * 24 + [pin] * pins,
        bytes([Role.HOLE] * 24 + [Role.PIN] * pins),
        rule=Rule.TOP_K,
        max_steps=LINE_STEPS,
        stop=Stop(StopKind.FIRST_LINE),
        seed=1,
    )


async def answered(engine: VllmEngine, job: CanvasJob) -> Frame:
    """The last frame of a job; raises RuntimeError with the engine's sentence when it failed."""
    last = [frame async for frame in engine.submit(job)][-1]
    if last.done is None or last.done.message:
        raise RuntimeError(last.done.message if last.done else "a job ended without an end")
    return last


async def ours(engine: VllmEngine, scale: Scale, length: int, kept: Numbers) -> list[str]:
    """Blocks and lines by concurrency."""

    def ask_for(build: Build) -> Ask:
        async def ask(number: int, prompt: list[int]) -> float:
            begun = time.perf_counter()
            await answered(engine, build(scale, f"job {number}", prompt))
            return 1000 * (time.perf_counter() - begun)

        return ask

    lines = [f"  a block of {scale.canvas}, {scale.steps} steps, prompt of {length} cached"]
    block: Numbers = kept.setdefault("block", {}).setdefault(str(length), {})
    lines += await at_once(ask_for(block_job), scale.canvas, length, scale, block)
    lines.append(f"  a line of 24 in a canvas of {scale.line}, 4 steps, prompt of {length} cached")
    line: Numbers = kept.setdefault("line", {}).setdefault(str(length), {})
    lines += await at_once(ask_for(line_job), 24, length, scale, line)
    return lines


async def step_of_ours(
    engine: VllmEngine, scale: Scale, length: int, kept: Numbers
) -> list[str]:  # fmt: skip
    """A denoise step: what a block of all steps takes longer than one of a quarter of them."""
    prompt = prompts(scale, length, 1, seed=1)[0]
    few = max(1, scale.steps // 4)
    times: dict[int, list[float]] = {few: [], scale.steps: []}
    for number in range(3 * scale.repeats):
        for steps, found in times.items():
            begun = time.perf_counter()
            job = block_job(scale, f"{steps} steps of {length}, {number}", prompt, steps)
            await answered(engine, job)
            found.append(1000 * (time.perf_counter() - begun))
    return _step(times, scale.steps - few, length, kept)


async def step_of_upstream(llm: Any, scale: Scale, length: int, kept: Numbers) -> list[str]:
    """A forward: what two canvases take longer than one, the commit counted as a step."""
    prompt = prompts(scale, length, 1, seed=1)[0]
    times: dict[int, list[float]] = {1: [], 2: []}
    for number in range(3 * scale.repeats):
        for canvases, found in times.items():
            begun = time.perf_counter()
            name = f"{canvases} canvases behind {length}, {number}"
            await upstream_block(llm, scale, prompt, name, canvases)
            found.append(1000 * (time.perf_counter() - begun))
    return _step(times, scale.steps + 1, length, kept)


def _step(
    times: dict[int, list[float]], between: int, length: int, kept: Numbers
) -> list[str]:  # fmt: skip
    short, long = (statistics.median(found) for found in times.values())
    kept.setdefault("step", {})[str(length)] = {"ms": (long - short) / between}
    return [f"    a step behind {length}: {(long - short) / between:.2f} ms"]


async def parts_of_line(
    engine: VllmEngine, scale: Scale, length: int, kept: Numbers
) -> list[str]:  # fmt: skip
    """Where a line's time goes, by the engine's own stages, milliseconds."""
    prompt = prompts(scale, length, 1, seed=1)[0]
    found: dict[str, list[float]] = {}
    for number in range(4 * scale.repeats):
        begun = time.perf_counter()
        last = await answered(engine, line_job(scale, f"parts {length}, {number}", prompt))
        for name, ms in [*last.ms.items(), ("all", 1000 * (time.perf_counter() - begun))]:
            found.setdefault(name, []).append(ms)
    medians = {name: statistics.median(values) for name, values in found.items()}
    kept.setdefault("line_parts", {})[str(length)] = medians
    shown = ", ".join(f"{name} {ms:.1f}" for name, ms in medians.items())
    return [f"    a line behind {length} by stages, ms: {shown}"]


async def line_apart(engine: VllmEngine, scale: Scale, length: int, kept: Numbers) -> list[str]:
    """A line with a forward of its own for its prompt's end, and without, by turns."""
    prompt = prompts(scale, length, 1, seed=1)[0]
    found: dict[bool, list[float]] = {True: [], False: []}
    for number in range(4 * scale.repeats):
        for joined, times in found.items():
            told_core = (await engine.llm.collective_rpc("join_canvases", args=(joined,)))[0]
            if not told_core:
                return ["    no scheduler to tell in the worker's process"]
            begun = time.perf_counter()
            await answered(engine, line_job(scale, f"joined {joined} {length} {number}", prompt))
            times.append(1000 * (time.perf_counter() - begun))
    await engine.llm.collective_rpc("join_canvases", args=(True,))
    joined, apart = (spread(times) for times in found.values())
    kept.setdefault("line_joined", {})[str(length)] = {"joined": joined, "apart": apart}
    return [f"    a line behind {length}, joined {joined['ms']:.1f} ms, apart {apart['ms']:.1f} ms"]


async def timeline_of_line(engine: VllmEngine, scale: Scale, length: int) -> list[str]:
    """What the host does for a line behind a cached prompt, and when."""
    prompt = prompts(scale, length, 1, seed=1)[0]
    await answered(engine, line_job(scale, f"first {length}", prompt))
    await engine.llm.collective_rpc("begin_timeline")
    jobs: list[tuple[float, list[float]]] = []
    for number in range(2 * scale.repeats):
        submitted, frames = time.monotonic(), list[float]()
        async for _ in engine.submit(line_job(scale, f"timed {length}, {number}", prompt)):
            frames.append(time.monotonic())
        jobs.append((submitted, frames))
    events = (await engine.llm.collective_rpc("end_timeline"))[0]
    return told(events, jobs)


async def upstream(llm: Any, scale: Scale, length: int, kept: Numbers) -> list[str]:
    """The same blocks by vLLM itself, which commits each canvas."""
    names = iter(range(10**9))

    async def ask(_: int, prompt: list[int]) -> float:
        begun = time.perf_counter()
        await upstream_block(llm, scale, prompt, f"upstream {length} {next(names)}")
        return 1000 * (time.perf_counter() - begun)

    lines = [
        f"  a block of {scale.canvas}, {scale.steps} steps and a commit, prompt of {length} cached"
    ]
    block: Numbers = kept.setdefault("block", {}).setdefault(str(length), {})
    return lines + await at_once(ask, scale.canvas, length, scale, block)


async def upstream_block(
    llm: Any, scale: Scale, prompt: list[int], name: str, canvases: int = 1
) -> None:
    """Whole canvases by vLLM itself."""
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt

    wanted = canvases * scale.canvas
    params = SamplingParams(max_tokens=wanted, ignore_eos=True, detokenize=False)
    tokens = 0
    async for output in llm.generate(TokensPrompt(prompt_token_ids=prompt), params, name):
        tokens = len(output.outputs[0].token_ids)
    if tokens != wanted:
        raise RuntimeError(f"vLLM gave {tokens} tokens, not {wanted}.")


async def profiled_ours(engine: VllmEngine, scale: Scale, length: int, profile: Path) -> list[str]:
    """Where the GPU's time of a block and of a line goes, prompts cached."""
    prompt = prompts(scale, length, 1, seed=1)[0]
    lines: list[str] = []
    for name, build in (("block", block_job), ("line", line_job)):

        async def ask(build: Build = build, name: str = name) -> None:
            await answered(engine, build(scale, f"profiled {name}", prompt))

        steps = scale.steps if name == "block" else LINE_STEPS
        lines += await _profiled(engine.llm, ask, f"{name}-{length}", steps, profile)
    touched = (await engine.llm.collective_rpc("experts_touched", args=(scale.canvas,)))[0]
    fewer = (await engine.llm.collective_rpc("experts_touched", args=(scale.line,)))[0]
    if touched:
        lines.append(
            f"    experts that random hidden states reach in a layer: by {scale.canvas} of them "
            f"{statistics.mean(touched):.0f}, by {scale.line} {statistics.mean(fewer):.0f}"
        )
    return lines


async def profiled_upstream(llm: Any, scale: Scale, length: int, profile: Path) -> list[str]:
    """The same of a block by vLLM itself; the commit is one of its forwards."""
    prompt = prompts(scale, length, 1, seed=1)[0]

    async def ask() -> None:
        await upstream_block(llm, scale, prompt, f"profiled {length}")

    return await _profiled(llm, ask, f"block-{length}", scale.steps + 1, profile)


async def _profiled(
    llm: Any, ask: Callable[[], Awaitable[None]], name: str, forwards: int, profile: Path
) -> list[str]:
    await ask()
    await llm.collective_rpc("begin_profile")
    await ask()
    kernels = (await llm.collective_rpc("end_profile"))[0]
    text = "".join(f"{us:10.1f} {calls:6} {kernel}\n" for kernel, calls, us in kernels)
    profile.with_name(f"{profile.name}-{name}.txt").write_text(text)
    idle = sum(us for kernel, _, us in kernels if kernel.startswith(IDLE))
    busy = sum(us for _, _, us in kernels) - idle
    lines = [
        f"    {name}: {busy / forwards / 1000:.2f} ms of kernels a forward, "
        f"{idle / forwards / 1000:.2f} ms of nothing between them"
    ]
    lines += [
        f"      {us / forwards:8.1f} us, {calls / forwards:5.1f} calls: {kernel[:90]}"
        for kernel, calls, us in kernels[:PROFILED]
    ]
    return lines


async def first_jobs(engine: VllmEngine, scale: Scale) -> list[str]:
    """Whether anything is left to compile after the start: the first jobs' times."""
    times: list[float] = []
    for number, prompt in enumerate(prompts(scale, scale.lengths[0], 4, seed=77)):
        begun = time.perf_counter()
        await answered(engine, block_job(scale, f"first {number}", prompt))
        times.append(1000 * (time.perf_counter() - begun))
    shown = ", ".join(f"{ms:.0f}" for ms in times)
    return [f"  the first four blocks after the start, prompt not cached: {shown} ms"]


async def forwards(engine: VllmEngine, scale: Scale) -> list[str]:
    """Forwards of a block beyond its prefill and its steps."""
    prompt = prompts(scale, scale.lengths[0], 1, seed=5)[0]
    last = await answered(engine, block_job(scale, "forwards", prompt))
    extra = last.forwards - 1 - last.step
    return [f"  one block: 1 prefill, {last.step} steps and {extra} commit forwards"]


async def blocks(engine: VllmEngine, scale: Scale, kept: Numbers) -> list[str]:
    """The layers' blocks in fewer launches beside upstream's operations; see bench.gpu.worker."""
    lines: list[str] = []
    for rows in (scale.line, scale.canvas):
        found = (await engine.llm.collective_rpc("compare_blocks", args=(rows,)))[0]
        if found:
            errors = [one["error"] for one in found]
            kept.setdefault("feed_forward", {})[str(rows)] = {
                "us": found[0]["us"], "error": statistics.median(errors), "worst": max(errors),
            }  # fmt: skip
            lines.append(
                f"  {len(found)} feed-forward blocks of {rows} rows: {found[0]['us']:.1f} us each,"
                f" {statistics.median(errors):.2g} from upstream's ({max(errors):.2g} at most)"
            )
    for rows in (scale.line, scale.canvas):
        found = (await engine.llm.collective_rpc("compare_layers", args=(rows,)))[0]
        names = sorted({name for one in found for name in one})
        worst = {name: max(one.get(name, 0.0) for one in found) for name in names}
        if found:
            kept.setdefault("whole_layers", {})[str(rows)] = {"layers": len(found), "worst": worst}
            shown = ", ".join(f"{name} {error:.2g}" for name, error in worst.items())
            lines.append(f"  {len(found)} whole layers of {rows} rows, worst errors: {shown}")
    return lines or ["  layers run as upstream has them"]


async def editors(engine: VllmEngine, scale: Scale, kept: Numbers) -> list[str]:
    """Editors that ask for a line at every key and cancel the one before, by how many there are.

    Each has a prompt of its own, which grows by a token a key, and pauses by an exponential law.
    """
    lines = [
        f"  editors that type a key each {KEY_SECONDS:g} s on average, a line of 24 at every key, "
        f"prompts of {scale.lengths[-1] // 2} tokens, {scale.typing_s:g} s each row"
    ]
    for count in scale.editors:
        found = await asyncio.gather(
            *(_editor(engine, scale, f"{count} editors, {number}") for number in range(count))
        )
        times = sorted(ms for one in found for ms in one)
        keys = sum(len(one) for one in found)
        answered_ms = [ms for ms in times if ms > 0]
        kept.setdefault("editors", {})[str(count)] = {
            "p50": _quantile(answered_ms, 0.5), "p90": _quantile(answered_ms, 0.9),
            "keys": keys, "overtaken": keys - len(answered_ms),
        }  # fmt: skip
        lines.append(
            f"    {count:2} editors: p50 {_quantile(answered_ms, 0.5):6.1f} ms, p90 "
            f"{_quantile(answered_ms, 0.9):6.1f} ms from key to last wanted token; {keys} keys, "
            f"{keys - len(answered_ms)} overtaken by the next"
        )
    return lines


async def _editor(engine: VllmEngine, scale: Scale, name: str) -> list[float]:
    """Milliseconds of each key's answer, 0 where the next key came first."""
    chance = random.Random(name)
    prompt = prompts(scale, scale.lengths[-1] // 2, 1, seed=chance.randrange(10**6))[0]
    await answered(engine, line_job(scale, f"{name}: opened", prompt))
    asked: list[asyncio.Task[float]] = []
    until = time.perf_counter() + scale.typing_s
    await asyncio.sleep(chance.random() * KEY_SECONDS)
    while time.perf_counter() < until:
        if asked and not asked[-1].done():
            await engine.cancel(f"{name}: key {len(asked) - 1}")
        prompt = [*prompt, chance.randrange(100, scale.vocab_size)]
        job = line_job(scale, f"{name}: key {len(asked)}", prompt)
        asked.append(asyncio.create_task(_line_ms(engine, job)))
        await asyncio.sleep(chance.expovariate(1 / KEY_SECONDS))
    return list(await asyncio.gather(*asked))


async def _line_ms(engine: VllmEngine, job: CanvasJob) -> float:
    begun = time.perf_counter()
    last = [frame async for frame in engine.submit(job)][-1]
    if last.done is None or last.done.kind is DoneKind.CANCELLED:
        return 0.0
    if last.done.message:
        raise RuntimeError(last.done.message)
    return 1000 * (time.perf_counter() - begun)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


async def cancelling(engine: VllmEngine, scale: Scale) -> list[str]:
    """From a cancel to the job's last frame, and to a free slot in the worker."""
    told: list[float] = []
    held: list[int] = []
    for number in range(scale.repeats):
        prompt = prompts(scale, scale.lengths[0], 1, seed=number)[0]
        job = block_job(scale, f"cancelled {number}", prompt, steps=100_000)
        seen, begun = 0, 0.0
        async for frame in engine.submit(job):
            seen += 1
            if seen == 3:
                begun = time.perf_counter()
                await engine.cancel(job.id)
            if frame.done is not None:
                told.append(1000 * (time.perf_counter() - begun))
        # A step of another job carries the abort to the worker.
        await answered(engine, line_job(scale, f"after {number}", [5, 6, 7]))
        held.append((await engine.llm.collective_rpc("requests_held"))[0])
    return [
        f"  cancel to CANCELLED: {statistics.median(told):.2f} ms (largest {max(told):.2f}); "
        f"requests held behind another job: {max(held)} at most, of which that job is one"
    ]


async def prefix_caching(engine: VllmEngine, scale: Scale) -> list[str]:
    """The second job over a long prompt, with another canvas."""
    length = scale.lengths[-1]
    prompt = prompts(scale, length, 1, seed=99)[0]
    lines: list[str] = []
    for name, pin in (("first", 500), ("second, canvas changed", 600)):
        last = await answered(engine, line_job(scale, name, prompt, pin))
        lines.append(
            f"  prompt of {length}, {name}: {length - last.cached_tokens} tokens prefilled, "
            f"{last.ms['encode']:.1f} ms to the first draft"
        )
    return lines
