"""One stage of bench/gpu_engine.py, in a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from dg_engine.vllm_engine import VllmEngine, VllmOptions

from bench.gpu import random_model, speed
from bench.gpu.answers import MODEL, compare
from bench.gpu.report import Report
from bench.gpu.solved import read

WORKER = "bench.gpu.worker.GpuWorker"
MAX_TOKENS = 8192
"""Of one request, and of one forward."""
REHEARSED = 6
"""Jobs that a rehearsal compares, two of each kind."""


async def answers(dtype: str, backend: str | None, rehearse: bool, report: Report) -> None:
    """See bench.gpu.answers."""
    # FlashAttention has no float32.
    chosen = "TRITON_ATTN" if dtype == "float32" and not rehearse else backend
    options = VllmOptions(
        dtype=dtype, max_model_len=2048, max_num_seqs=32, attention_backend=chosen,
        enforce_eager=rehearse,
    )  # fmt: skip
    await compare(options, read(MODEL)[: REHEARSED if rehearse else None], report)


class Subject(NamedTuple):
    """What is measured, and how much of it."""

    scale: speed.Scale
    model: str
    arguments: dict[str, Any]
    """The same for both engines; see vLLM's AsyncEngineArgs."""


def subject(work: Path, backend: str | None, layers: int, rehearse: bool) -> Subject:
    """The 26B-A4B configuration; for a rehearsal a small one of the same shape."""
    scale = speed.REHEARSAL if rehearse else speed.Scale()
    model = random_model.write(work / f"random-{layers}", layers=layers, small=rehearse)
    arguments: dict[str, Any] = {
        "load_format": "dummy",
        "max_num_batched_tokens": 512 if rehearse else MAX_TOKENS,
        "max_model_len": 512 if rehearse else MAX_TOKENS,
        "max_num_seqs": max(scale.at_once),
        "worker_extension_cls": WORKER,
        "enforce_eager": rehearse,
    }
    if backend is not None:
        arguments["attention_backend"] = backend
    return Subject(scale, str(model), arguments)


async def ours(chosen: Subject, report: Report) -> None:
    """See bench.gpu.speed."""
    begun = time.perf_counter()
    options = VllmOptions(canvas_length=chosen.scale.canvas, extra=chosen.arguments)
    engine = await VllmEngine.start(Path(chosen.model), options)
    report.tell(f"  started and warm after {time.perf_counter() - begun:.0f} s")
    scale = chosen.scale
    try:
        await report.take("the weights", realistic_weights(engine.llm))
        await report.take("the first jobs", speed.first_jobs(engine, scale))
        await report.take("the forwards of a block", speed.forwards(engine, scale))
        for length in scale.lengths:
            await report.take(f"prompts of {length}", speed.ours(engine, scale, length))
        await report.take("cancelling", speed.cancelling(engine, scale))
        await report.take("prefix caching", speed.prefix_caching(engine, scale))
    finally:
        await engine.close()


async def upstream(chosen: Subject, report: Report) -> None:
    """vLLM as it is."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    scale = chosen.scale
    arguments: dict[str, Any] = {
        "model": chosen.model,
        "skip_tokenizer_init": True,
        "gpu_memory_utilization": 0.85,
        "enable_prefix_caching": True,
        "limit_mm_per_prompt": {"image": 0, "video": 0, "audio": 0},
        "diffusion_config": {"canvas_length": scale.canvas, "max_denoising_steps": scale.steps},
        "disable_log_stats": True,
    }
    begun = time.perf_counter()
    llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**(arguments | chosen.arguments)))
    report.tell(f"  started after {time.perf_counter() - begun:.0f} s")
    try:
        await report.take("the weights", realistic_weights(llm))
        for length in scale.lengths:
            await report.take(f"prompts of {length}", speed.upstream(llm, scale, length))
    finally:
        llm.shutdown()


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
    options = parser.parse_args()
    report = Report()

    async def run() -> None:
        if options.stage.startswith("answers-"):
            dtype = options.stage.removeprefix("answers-").replace("bf16", "bfloat16")
            await answers(dtype, options.backend, options.rehearse, report)
            return
        chosen = subject(options.work, options.backend, options.layers, options.rehearse)
        await (ours if options.stage == "ours" else upstream)(chosen, report)

    asyncio.run(report.whole(run()))
    sys.exit(report.failed)


if __name__ == "__main__":
    main()
