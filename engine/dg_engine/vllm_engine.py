"""The GPU engine: vLLM in processes of its own, with our plugin, behind the engine contract."""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from dg_engine.canvas_backend import Limits
from dg_engine.canvas_engine import CanvasEngine
from dg_engine.engine import EngineError
from dg_engine.job import (
    CanvasJob,
    EngineInfo,
    Judge,
    JudgeKind,
    MaskRule,
    Priority,
    Role,
)
from dg_engine.model_config import ModelConfig, read_config
from dg_engine.tokenizer import Tokenizer
from dg_engine.vllm_plugin.compat import installed_version, refusal
from dg_engine.vllm_plugin.drafts import Code, Draft, unpack_drafts
from dg_engine.vllm_plugin.options import (
    CONDITIONING_TOP_K,
    FP8_HEAD,
    FUSED_LAYERS,
    JOINED_CANVASES,
)
from dg_engine.vllm_plugin.register import MASK_RULE, register_anchored
from dg_engine.vllm_plugin.request import CanvasRequest
from dg_engine.vllm_plugin.vocabulary import VocabularySets

WARM_UP_TOKENS = 4096
"""Of the prompt that prepares for those which are read in one forward too large to be captured."""
NO_GPU = (
    "vLLM finds no GPU on this machine; install or repair its driver until `nvidia-smi` lists it, "
    'or set "engine" to "torch".'
)
ENDED_EARLY = "vLLM ended a request without an answer; restart the engine."


class VllmOptions(NamedTuple):
    """How vLLM is started; what is None vLLM chooses."""

    dtype: str = "auto"
    max_model_len: int | None = None
    """Tokens of prompt and canvas together."""
    max_num_seqs: int = 16
    """Canvases at once."""
    max_num_batched_tokens: int | None = None
    """Tokens of one forward; canvases of all requests that run must fit."""
    gpu_memory_utilization: float = 0.85
    tensor_parallel_size: int = 1
    attention_backend: str | None = None
    canvas_length: int | None = None
    """Below the checkpoint's: captured graphs then fit narrow canvases."""
    enforce_eager: bool = False
    mask_rule: MaskRule = MaskRule.SYMMETRIC
    """ANCHORED is computed in plain PyTorch, and on the CPU only."""
    conditioning_top_k: int = 0
    """Likeliest tokens that self-conditioning reads, 1 to 64; 0 for all, as published."""
    fp8_head: bool = False
    """Whether logits come from a copy of the head in FP8, on one GPU: faster, and coarser."""
    fused_layers: bool = True
    """Whether FP8 layers run in fewer launches where this vLLM and one GPU allow it."""
    joined_canvases: bool = True
    """Whether a canvas takes its first step in the forward that reads the end of its prompt, where
    the attention is ours."""
    load_format: str = "auto"
    """`dummy` fills a checkpoint folder that has no weights."""
    extra: dict[str, Any] = {}  # noqa: RUF012 - never changed
    """Further arguments of vLLM's AsyncEngineArgs."""


class VllmBackend:
    """CanvasBackend over AsyncLLM."""

    def __init__(self, llm: Any, canvas_length: int) -> None:
        self._llm = llm
        self._canvas_length = canvas_length

    async def run(
        self, prompt: list[int], request: CanvasRequest, *, name: str, priority: int
    ) -> AsyncIterator[Draft]:
        """See CanvasBackend."""
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            temperature=1.0,
            max_tokens=request.most_tokens(self._canvas_length),
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=request.to_args(),
            # They are nobody else's, and a copy of every id takes a millisecond.
            skip_clone=True,
        )
        outputs = self._llm.generate(
            TokensPrompt(prompt_token_ids=prompt), params, name, priority=priority
        )
        ended = False
        try:
            # Read to its end: leaving vLLM's iterator early would send it an abort.
            async with contextlib.aclosing(outputs):
                async for output in outputs:
                    for draft in unpack_drafts(list(output.outputs[0].token_ids)):
                        if draft.code is Code.REFUSED:
                            raise EngineError("vLLM's plugin refused the request as malformed.")
                        ended = draft.code.final
                        yield draft
        except EngineError:
            raise
        except Exception as error:  # vLLM's errors have no common base
            raise EngineError(f"vLLM failed ({type(error).__name__}: {error}).") from error
        if not ended:
            raise EngineError(ENDED_EARLY)


class VllmEngine(CanvasEngine):
    """Made by `start`."""

    def __init__(
        self, llm: Any, backend: VllmBackend, limits: Limits, sets: VocabularySets, info: EngineInfo
    ) -> None:
        super().__init__(backend, limits, sets)
        self.llm = llm
        """vLLM's AsyncLLM."""
        self._info = info

    @classmethod
    async def start(cls, folder: Path, options: VllmOptions | None = None) -> VllmEngine:
        """Load a checkpoint folder and warm up, so that the first job compiles nothing.

        Raises EngineError with one sentence when vLLM is missing, of a release that the plugin is
        not made for, finds no GPU, or cannot load the model.
        """
        options = options or VllmOptions()
        refused = refusal(installed_version())
        if refused:
            raise EngineError(refused)
        config = read_config(folder, any_weights=True)
        tokenizer = Tokenizer(folder) if (folder / "tokenizer.json").exists() else None
        llm = await asyncio.to_thread(_load, folder, config, options)
        canvas_length = options.canvas_length or config.canvas_length
        limits = Limits(canvas_length, config.vocab_size, llm.model_config.max_model_len)
        sets = VocabularySets.of(config.eos, tokenizer)
        info = EngineInfo(
            model=config.name,
            canvas_length=canvas_length,
            vocab_size=config.vocab_size,
            tokenizer_digest=tokenizer.digest if tokenizer else "",
            device=str(llm.vllm_config.device_config.device_type),
            dtype=str(llm.model_config.dtype).removeprefix("torch."),
            parameters=config.parameters,
            causal_predicts=False,
        )
        engine = cls(llm, VllmBackend(llm, canvas_length), limits, sets, info)
        try:
            await engine._warm_up(tokenizer)
        except EngineError:
            await engine.close()
            raise
        return engine

    async def _warm_up(self, tokenizer: Tokenizer | None) -> None:
        """Run every kind of request once, and measure whether the causal mode predicts."""
        length, any_id = self._info.canvas_length, [*self.host.sets.eos, 0][:1]
        longest = self.host.limits.max_tokens - length
        for prompt in (2, min(longest, WARM_UP_TOKENS)):
            job = CanvasJob(
                f"warm-up with {prompt}",
                any_id * prompt,
                [0] * length,
                bytes([Role.HOLE]) * length,
                max_steps=2,
                alternatives=2,
                causal_candidate=True,
                judge=Judge(JudgeKind.CAUSAL),
                priority=Priority.INTERACTIVE,
            )
            async for frame in self.submit(job):
                if frame.done is not None and frame.done.message:
                    raise EngineError(frame.done.message)
        if tokenizer is not None:
            predicts = await self.causal_predicts(tokenizer)
            self._info = structs.replace(self._info, causal_predicts=predicts)

    async def info(self) -> EngineInfo:
        """What is loaded."""
        return self._info

    async def close(self) -> None:
        """End every job with CANCELLED and stop vLLM's processes."""
        await super().close()
        await asyncio.to_thread(self.llm.shutdown)


def _load(folder: Path, config: ModelConfig, options: VllmOptions) -> Any:
    from vllm.platforms import current_platform

    if not current_platform.device_type:  # nothing that this vLLM is built for answers
        raise EngineError(NO_GPU)
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    length = options.canvas_length or config.canvas_length
    if not 1 <= length <= config.canvas_length:
        raise EngineError(
            f"canvas_length is {length}; this model takes 1 to {config.canvas_length}."
        )
    batched = options.max_num_batched_tokens
    if batched is not None and batched < length * options.max_num_seqs:
        raise EngineError(
            f"{options.max_num_seqs} canvases of {length} need max_num_batched_tokens of at least "
            f"{length * options.max_num_seqs}, not {batched}."
        )
    arguments: dict[str, Any] = {
        "model": str(folder),
        "dtype": options.dtype,
        "max_model_len": options.max_model_len,
        "max_num_seqs": options.max_num_seqs,
        "max_num_batched_tokens": batched or max(2048, length * options.max_num_seqs),
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "tensor_parallel_size": options.tensor_parallel_size,
        "enforce_eager": options.enforce_eager,
        "load_format": options.load_format,
        "enable_prefix_caching": True,
        "scheduling_policy": "priority",
        "skip_tokenizer_init": True,
        "limit_mm_per_prompt": {"image": 0, "video": 0, "audio": 0},
        "diffusion_config": {"canvas_length": length},
        # No image ever comes, so its tower is neither built nor held.
        "hf_overrides": {"vision_config": None},
        "additional_config": {
            CONDITIONING_TOP_K: options.conditioning_top_k,
            FP8_HEAD: options.fp8_head,
            FUSED_LAYERS: options.fused_layers,
            JOINED_CANVASES: options.joined_canvases,
        },
        "disable_log_stats": True,
        "enable_log_requests": False,
    }
    if options.attention_backend is not None:
        arguments["attention_backend"] = options.attention_backend
    # vLLM's processes read it when they load the plugin.
    os.environ[MASK_RULE] = options.mask_rule
    if options.mask_rule is MaskRule.ANCHORED:
        register_anchored()
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**{**arguments, **options.extra}))
    except Exception as error:  # vLLM's errors have no common base
        reason = " ".join(str(error).split())
        raise EngineError(
            f"vLLM cannot start {folder} ({type(error).__name__}: {reason}); its log says why."
        ) from error
