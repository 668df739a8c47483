"""From a checkpoint folder to a solver: dtype for the machine, tokenizer sets, a first check."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import NamedTuple

import torch

from dg_engine.compact import CompactModel
from dg_engine.engine import EngineError
from dg_engine.job import EngineInfo, MaskRule
from dg_engine.model import DenoiserModel
from dg_engine.model_config import ModelConfig, read_config
from dg_engine.prefix_cache import PrefixCache
from dg_engine.reference import ReferenceModel
from dg_engine.solver import DEFAULT_CONDITIONING, Conditioning, Solver
from dg_engine.tokenizer import Tokenizer

PROBE = """import os
import sys


def main(argv):
    if len(argv) < 2:
        print("usage: copy SOURCE TARGET")
        return 1
    source, target = argv[1], argv[2]
    with open(source) as file:
        text = file.read()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
"""
"""Ordinary code whose next tokens any causal code model predicts far better than chance."""

CACHE_BYTES = 256 * 2**20
SPARE_TOKENS = 24
"""Of a cached prompt that one may lack which takes its place; about two lines."""


class Loaded(NamedTuple):
    """A model ready to solve."""

    solver: Solver
    info: EngineInfo
    config: ModelConfig


def best_device() -> torch.device:
    """CUDA where there is a GPU that answers, otherwise the CPU."""
    if torch.cuda.is_available():
        try:
            torch.zeros(1, device="cuda")
        except (RuntimeError, AssertionError) as error:  # a lost GPU; a PyTorch without CUDA
            reason = " ".join(str(error).split())
            print(f"The GPU does not answer ({reason}); the processor is used.", file=sys.stderr)
        else:
            return torch.device("cuda")
    return torch.device("cpu")


def best_dtype(device: torch.device) -> torch.dtype:
    """bf16 on a GPU and on CPUs that multiply it natively, otherwise float32."""
    if device.type != "cpu":
        return torch.bfloat16
    capability = torch.backends.cpu.get_cpu_capability()
    native = _cpu_flags() & {"avx512_bf16", "amx_bf16", "bf16"}
    return torch.bfloat16 if native and capability != "DEFAULT" else torch.float32


def _cpu_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            return set(line.split(":", 1)[1].split())
    return set()


def load(
    folder: Path,
    *,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
    mask_rule: MaskRule = MaskRule.ANCHORED,
    reference: bool = False,
    cache_bytes: int = CACHE_BYTES,
    cache: PrefixCache | None = None,
    conditioning: Conditioning = DEFAULT_CONDITIONING,
) -> Loaded:
    """Load a DiffusionGemma checkpoint folder.

    `reference` asks for transformers' forward even where the compact one would do. `cache` takes
    the place of a new one of `cache_bytes`: prompts are read alike whatever the mask rule and the
    conditioning, so engines that differ in these alone can share it. Raises EngineError with one
    sentence for anything missing, truncated or foreign.
    """
    config = read_config(folder)
    tokenizer = Tokenizer(folder)
    if tokenizer.vocab_size > config.vocab_size:
        raise EngineError(
            f"{folder / 'tokenizer.json'} has {tokenizer.vocab_size} tokens but the model "
            f"{config.vocab_size}; they belong to two different checkpoints."
        )
    device = device or best_device()
    dtype = dtype or best_dtype(device)
    with torch.inference_mode():
        model: DenoiserModel
        if config.compact and not reference:
            model = CompactModel(folder, config, device=device, dtype=dtype, mask_rule=mask_rule)
        elif mask_rule is not MaskRule.ANCHORED:
            raise EngineError("The reference engine knows the anchored mask rule only.")
        else:
            model = ReferenceModel(folder, config, device=device, dtype=dtype)
        gain = causal_gain(model, tokenizer)
    info = EngineInfo(
        model=config.name,
        canvas_length=config.canvas_length,
        vocab_size=config.vocab_size,
        tokenizer_digest=tokenizer.digest,
        device=str(device),
        dtype=str(dtype).removeprefix("torch."),
        parameters=model.parameters,
        causal_predicts=gain > 1.0,
    )
    solver = Solver(
        model,
        eos=frozenset(config.eos),
        line_breaks=tokenizer.line_break_ids,
        special=tokenizer.special_ids,
        cache=PrefixCache(cache_bytes, SPARE_TOKENS) if cache is None else cache,
        conditioning=conditioning,
    )
    return Loaded(solver, info, config)


def causal_gain(model: DenoiserModel, tokenizer: Tokenizer) -> float:
    """Nats per token by which the causal mode beats uniform guessing on ordinary code."""
    ids = torch.tensor(tokenizer.encode(PROBE), device=model.device)
    hidden, _ = model.encode(ids[:-1], None)
    found = torch.log_softmax(model.logits(hidden), -1).gather(-1, ids[1:, None])
    return math.log(model.config.vocab_size) + float(found.mean())
