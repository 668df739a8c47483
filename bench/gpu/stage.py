"""One stage of bench/gpu_engine.py, in a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from dg_engine.vllm_engine import VllmEngine, VllmOptions

from bench.gpu import random_model, speed
from bench.gpu.answers import MODEL, compare
from bench.gpu.solved import read

WORKER = "bench.gpu.worker.GpuWorker"
MAX_TOKENS = 8192
"""Of one request, and of one forward."""
Lines = AsyncIterator[str]


async def answers(dtype: str, backend: str | None, rehearse: bool) -> Lines:
    """See bench.gpu.answers."""
    # FlashAttention has no float32.
    chosen = "TRITON_ATTN" if dtype == "float32" and not rehearse else backend
    options = VllmOptions(
        dtype=dtype, max_model_len=2048, max_num_seqs=32, attention_backend=chosen,
        enforce_eager=rehearse,
    )  # fmt: skip
    for line in await compare(options, read(MODEL)):
        yield line


class Subject(NamedTuple):
    """What is measured, and how much of it."""

    scale: speed.Scale
    model: str
    arguments: dict[str, Any]
    """The same for both engines; see vLLM's AsyncEngineArgs."""


def subject(work: Path, backend: str | None, layers: int, rehearse: bool) -> Subject:
    """The 26B-A4B configuration, or dg-tiny for a rehearsal."""
    scale, model = speed.Scale(), str(MODEL)
    arguments: dict[str, Any] = {
        "max_num_batched_tokens": MAX_TOKENS,
        "max_model_len": MAX_TOKENS,
        "worker_extension_cls": WORKER,
    }
    if backend is not None:
        arguments["attention_backend"] = backend
    if rehearse:
        scale = speed.Scale(8000, (40, 150), 32, 28, 2, (1, 2), 1)
        arguments |= {"max_num_batched_tokens": 512, "max_model_len": 512, "enforce_eager": True}
    else:
        model = str(random_model.write(work / "26b-random", layers=layers))
        arguments["load_format"] = "dummy"
    arguments["max_num_seqs"] = max(scale.at_once)
    return Subject(scale, model, arguments)


async def ours(chosen: Subject) -> Lines:
    """See bench.gpu.speed."""
    begun = time.perf_counter()
    options = VllmOptions(canvas_length=chosen.scale.canvas, extra=chosen.arguments)
    engine = await VllmEngine.start(Path(chosen.model), options)
    yield f"  started and warm after {time.perf_counter() - begun:.0f} s"
    if "load_format" in chosen.arguments:
        changed = (await engine.llm.collective_rpc("realistic_weights"))[0]
        yield f"  {changed} tensors given the sizes of a trained model"
    scale = chosen.scale
    for measured in (
        speed.first_jobs(engine, scale),
        speed.forwards(engine, scale),
        *(speed.ours(engine, scale, length) for length in scale.lengths),
        speed.cancelling(engine, scale),
        speed.prefix_caching(engine, scale),
    ):
        for line in await measured:
            yield line
    await engine.close()


async def upstream(chosen: Subject) -> Lines:
    """vLLM as it is."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    arguments: dict[str, Any] = {
        "model": chosen.model,
        "skip_tokenizer_init": True,
        "gpu_memory_utilization": 0.85,
        "enable_prefix_caching": True,
        "limit_mm_per_prompt": {"image": 0, "video": 0, "audio": 0},
        "diffusion_config": {
            "canvas_length": chosen.scale.canvas,
            "max_denoising_steps": chosen.scale.steps,
        },
        "disable_log_stats": True,
    }
    llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**(arguments | chosen.arguments)))
    if "load_format" in chosen.arguments:
        await llm.collective_rpc("realistic_weights")
    for length in chosen.scale.lengths:
        for line in await speed.upstream(llm, chosen.scale, length):
            yield line
    llm.shutdown()


async def show(lines: Lines) -> None:
    """Print each line as it comes."""
    async for line in lines:
        print(f"| {line}", flush=True)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--backend")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    if options.stage.startswith("answers-"):
        dtype = options.stage.removeprefix("answers-").replace("bf16", "bfloat16")
        lines = answers(dtype, options.backend, options.rehearse)
    else:
        chosen = subject(options.work, options.backend, options.layers, options.rehearse)
        lines = ours(chosen) if options.stage == "ours" else upstream(chosen)
    asyncio.run(show(lines))


if __name__ == "__main__":
    main()
