"""One stage of bench/gpu_engine.py, in a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from dg_engine.vllm_engine import VllmEngine, VllmOptions

from bench.gpu import nvfp4, parity, random_model, speed
from bench.gpu.answers import MODEL, compare
from bench.gpu.report import Report
from bench.gpu.solved import read
from bench.gpu.turn import turn

WORKER = "bench.gpu.worker.GpuWorker"
MAX_TOKENS = 8192
"""Of one request, and of one forward."""
MEMORY = 0.3
"""Share of the GPU's memory that must be free at the start, so that stages can start together."""
CACHE_BYTES = 12 << 30
"""Of keys and values; vLLM need not measure then what is left."""
LITTLE, LITTLE_BYTES = 0.05, 2 << 30
"""The same for dg-tiny."""
REHEARSED = 6
"""Jobs that a rehearsal compares, two of each kind."""


async def answers(dtype: str, backend: str | None, rehearse: bool, report: Report) -> None:
    """See bench.gpu.answers."""
    # FlashAttention has no float32.
    chosen = "TRITON_ATTN" if dtype == "float32" and not rehearse else backend
    options = VllmOptions(
        dtype=dtype, max_model_len=2048, max_num_seqs=32, attention_backend=chosen,
        enforce_eager=rehearse, gpu_memory_utilization=LITTLE,
        extra={} if rehearse else {"kv_cache_memory_bytes": LITTLE_BYTES},
    )  # fmt: skip
    async with turn():
        await compare(options, read(MODEL)[: REHEARSED if rehearse else None], report)


async def in_four_bits(folder: Path, report: Report) -> None:
    """See bench.gpu.nvfp4."""
    options = VllmOptions(
        max_model_len=2048, max_num_seqs=32, gpu_memory_utilization=LITTLE,
        extra={"kv_cache_memory_bytes": LITTLE_BYTES},
    )  # fmt: skip
    async with turn():
        await compare(options, nvfp4.read_answers(folder), report, folder / nvfp4.PACKED)


class Subject(NamedTuple):
    """What is measured, and how much of it."""

    scale: speed.Scale
    model: str
    arguments: dict[str, Any]
    """The same for both engines; see vLLM's AsyncEngineArgs."""
    top_k: int
    """See VllmOptions.conditioning_top_k."""
    fp8_head: bool
    """See VllmOptions.fp8_head."""
    plain_layers: bool
    """Not VllmOptions.fused_layers."""
    brief: bool
    """Whether upstream is measured at the longest prompt alone."""
    profile: Path
    """Where the kernels of a step are written."""
    kept: speed.Numbers
    """What was measured, for a file."""


def subject(options: argparse.Namespace) -> Subject:
    """The 26B-A4B configuration; for a rehearsal a small one of the same shape."""
    rehearse: bool = options.rehearse
    scale = speed.REHEARSAL if rehearse else speed.Scale()
    scale = scale._replace(**json.loads(options.scale))
    folder = options.work / f"random-{options.layers}"
    model = random_model.write(folder, layers=options.layers, small=rehearse)
    at_once = scale.at_once if options.stage == "upstream" else (*scale.at_once, *scale.editors)
    arguments: dict[str, Any] = {
        "load_format": "dummy",
        "max_num_batched_tokens": 512 if rehearse else MAX_TOKENS,
        "max_model_len": 512 if rehearse else MAX_TOKENS,
        "max_num_seqs": max(at_once),
        "worker_extension_cls": WORKER,
        "enforce_eager": rehearse,
    }
    if not rehearse:
        arguments["kv_cache_memory_bytes"] = CACHE_BYTES
    if options.backend is not None:
        arguments["attention_backend"] = options.backend
    further: dict[str, Any] = json.loads(options.arguments)
    profile = options.work / f"{options.name or options.stage}-kernels"
    return Subject(
        scale, str(model), arguments | further, options.top_k, options.fp8_head,
        options.plain_layers, options.brief, profile, {},
    )  # fmt: skip


async def ours(chosen: Subject, report: Report) -> None:
    """See bench.gpu.speed."""
    begun = time.perf_counter()
    options = VllmOptions(
        canvas_length=chosen.scale.canvas, conditioning_top_k=chosen.top_k,
        fp8_head=chosen.fp8_head, fused_layers=not chosen.plain_layers,
        gpu_memory_utilization=MEMORY, extra=chosen.arguments,
    )  # fmt: skip
    engine = await VllmEngine.start(Path(chosen.model), options)
    report.tell(f"  started and warm after {time.perf_counter() - begun:.0f} s")
    try:
        async with turn():
            await measure_ours(engine, chosen, report)
    finally:
        await engine.close()


async def measure_ours(engine: VllmEngine, chosen: Subject, report: Report) -> None:
    """All there is to measure of our engine; the profiler last, since it slows what follows it."""
    scale, kept = chosen.scale, chosen.kept
    alone, last = scale._replace(at_once=(1,)), scale.lengths[-1]
    await report.take("the first jobs", speed.first_jobs(engine, scale))
    dummy: speed.Numbers = kept.setdefault("dummy_weights", {})
    for length in scale.lengths:
        await report.take("dummy weights", speed.ours(engine, alone, length, dummy))
    await report.take("the weights", realistic_weights(engine.llm))
    await report.take("the forwards of a block", speed.forwards(engine, scale))
    await report.take("the layers", speed.blocks(engine, scale, kept))
    for length in scale.lengths:
        await report.take(f"prompts of {length}", speed.ours(engine, scale, length, kept))
        await report.take("a step", speed.step_of_ours(engine, scale, length, kept))
        await report.take("a line's parts", speed.parts_of_line(engine, scale, length, kept))
        await report.take("a line apart", speed.line_apart(engine, scale, length, kept))
        await report.take("a line's host", speed.timeline_of_line(engine, scale, length))
    await report.take("editors", speed.editors(engine, scale, kept))
    await report.take("cancelling", speed.cancelling(engine, scale))
    await report.take("prefix caching", speed.prefix_caching(engine, scale))
    if scale.profile:
        await report.take("the profile", speed.profiled_ours(engine, scale, last, chosen.profile))


async def upstream(chosen: Subject, report: Report) -> None:
    """vLLM as it is."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    scale = chosen.scale
    arguments: dict[str, Any] = {
        "model": chosen.model,
        "skip_tokenizer_init": True,
        "gpu_memory_utilization": MEMORY,
        "enable_prefix_caching": True,
        "limit_mm_per_prompt": {"image": 0, "video": 0, "audio": 0},
        "diffusion_config": {"canvas_length": scale.canvas, "max_denoising_steps": scale.steps},
        "disable_log_stats": True,
    }
    begun = time.perf_counter()
    llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**(arguments | chosen.arguments)))
    report.tell(f"  started after {time.perf_counter() - begun:.0f} s")
    try:
        async with turn():
            await measure_upstream(llm, chosen, report)
    finally:
        llm.shutdown()


async def measure_upstream(llm: Any, chosen: Subject, report: Report) -> None:
    """What vLLM does too; the profiler last here as well."""
    scale, kept = chosen.scale, chosen.kept
    alone, last = scale._replace(at_once=(1,)), scale.lengths[-1]
    if chosen.brief:
        scale = alone._replace(lengths=(last,))
    else:
        dummy: speed.Numbers = kept.setdefault("dummy_weights", {})
        for length in scale.lengths:
            await report.take("dummy weights", speed.upstream(llm, alone, length, dummy))
    await report.take("the weights", realistic_weights(llm))
    for length in scale.lengths:
        await report.take(f"prompts of {length}", speed.upstream(llm, scale, length, kept))
        await report.take("a step", speed.step_of_upstream(llm, scale, length, kept))
    if scale.profile and not chosen.brief:
        profile = speed.profiled_upstream(llm, scale, last, chosen.profile)
        await report.take("the profile", profile)


async def realistic_weights(llm: Any) -> list[str]:
    """See bench.gpu.worker."""
    changed = (await llm.collective_rpc("realistic_weights"))[0]
    return [f"  {changed} tensors given the sizes of a trained model"]


def main() -> None:
    """Entry point; exit code 1 when anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--backend")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--arguments", default="{}")
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--fp8-head", action="store_true")
    parser.add_argument("--plain-layers", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--scale", default="{}")
    parser.add_argument("--parity", type=Path)
    parser.add_argument("--nvfp4", type=Path)
    parser.add_argument("--name")
    options = parser.parse_args()
    report = Report()

    async def run() -> None:
        if options.stage.startswith("answers-"):
            dtype = options.stage.removeprefix("answers-").replace("bf16", "bfloat16")
            await answers(dtype, options.backend, options.rehearse, report)
            return
        if options.stage == "nvfp4":
            await in_four_bits(options.nvfp4, report)
            return
        if options.stage.startswith("parity-"):
            which = options.stage.removeprefix("parity-")
            await parity.compare(options.parity, which, options.rehearse, report)
            return
        chosen = subject(options)
        file = options.work / f"{options.name or options.stage}.json"

        def save() -> None:
            file.write_text(json.dumps(chosen.kept, indent=1))

        report.taken = save
        await (ours if options.stage == "ours" else upstream)(chosen, report)

    asyncio.run(report.whole(run()))
    sys.exit(report.failed)


if __name__ == "__main__":
    main()
