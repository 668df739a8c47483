"""Trains dg-tiny, or its causal twin, against a wall clock.

python -m training.train --data .train/pack/a .train/pack/b --out .train/run --minutes 23

On a GPU attention runs as compiled flex_attention; elsewhere as dense attention, so that the whole
run can be tried on a CPU with ``--tiny``. ``OUT/log.jsonl`` gets one record per ``LOG_STEPS`` and
one per validation, ``OUT/weights-STEP`` what training.export reads, ``OUT/state.pt`` what
``--resume`` needs. A lost run can be finished from an exported checkpoint with ``--start`` and
``--progress``.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from training.model import ModelConfig, parameter_count
from training.rows import CLEAN
from training.trainer import Trainer, rate_factor

CONDITIONED_FROM, CONDITIONED_SHARE = 0.40, 0.30
COMPILE_STEPS = 8
"""First steps, in which every graph is compiled; the schedule's clock starts behind them."""
LOG_STEPS, VALIDATION_STEPS, GUARD_STEP = 50, 500, 100
SYNCHRONISE_STEPS = 10
LEAST_TOKENS_PER_SECOND = 400_000
"""A GPU below this at GUARD_STEP is not doing what was planned; its time is better saved."""
PEAK_FLOPS = 989e12
"""Dense bf16 rate of an H100 or H200 by their data sheet."""
TINY = ModelConfig(
    hidden_size=64,
    intermediate_size=64,
    expert_intermediate_size=64,
    query_heads=2,
    key_value_heads=1,
    head_size=32,
    layer_pattern=("sliding", "full"),
)


class TrainingStopped(Exception):
    """The run is not worth its time; the message says why."""


class Log:
    """JSON lines in ``log.jsonl``, repeated on standard output."""

    def __init__(self, folder: Path, started: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "log.jsonl").open("a", encoding="utf-8")
        self._started = started

    def write(self, **record: Any) -> None:
        line = json.dumps({"seconds": round(time.time() - self._started, 1)} | record)
        print(line, file=self._file, flush=True)
        print(line, flush=True)


def run(trainer: Trainer, options: argparse.Namespace, log: Log, started: float) -> None:
    """Train until ``options.minutes`` after ``started``, or for ``options.steps``."""
    deadline = started + 60 * options.minutes
    step, resumed = trainer.load_state(options.resume) if options.resume else (0, options.progress)
    first, progress, flops, conditioned_steps = step, resumed, 0.0, 0
    clock = mark = saved = time.time()
    while progress < 1 and step < options.steps:
        compiling = step - first < COMPILE_STEPS
        wanted = progress >= CONDITIONED_FROM and trainer.choice.random() < CONDITIONED_SHARE
        conditioned = wanted or (compiling and step - first >= COMPILE_STEPS // 2)
        conditioned = conditioned and not trainer.causal_only
        conditioned_steps += conditioned
        flops += trainer.step(step, progress, conditioned)
        step += 1
        if step - first == COMPILE_STEPS:
            log.write(step=step, validation=trainer.validate())
            trainer.figures.read()
            clock = mark = saved = time.time()
            flops = 0.0
        if trainer.device.type == "cuda" and step % SYNCHRONISE_STEPS == 0:
            torch.cuda.synchronize()  # or the queue would run ahead of the clock
        if not compiling:
            share = (time.time() - clock) / max(1e-9, deadline - clock)
            progress = resumed + (1 - resumed) * share
        if step % LOG_STEPS == 0 and not compiling:
            figures, now = trainer.figures.read(), time.time()
            steps = min(LOG_STEPS, step - first - COMPILE_STEPS)
            rate = steps * trainer.rows * trainer.length / (now - mark)
            log.write(
                step=step,
                progress=round(progress, 4),
                rate_factor=round(rate_factor(step, progress), 4),
                tokens_per_second=int(rate),
                utilisation=round(flops / (now - mark) / PEAK_FLOPS, 4),
                million_tokens=round(step * trainer.rows * CLEAN / 1e6, 1),
                conditioned_steps=conditioned_steps,
                **figures,
            )
            mark, flops = now, 0.0
            guard(step, rate, figures, trainer.device)
        if step % VALIDATION_STEPS == 0:
            log.write(step=step, validation=trainer.validate())
        if time.time() - saved > 60 * options.save_minutes:
            keep(trainer, options.out, step, progress, log)
            saved = time.time()
    log.write(step=step, final=True, validation=trainer.validate(), **totals(trainer, step))
    keep(trainer, options.out, step, progress, log)


def guard(step: int, rate: float, figures: dict[str, Any], device: torch.device) -> None:
    """Raise ``TrainingStopped`` when going on would waste the machine's time."""
    if not math.isfinite(figures["canvas"]) or not math.isfinite(figures["causal"]):
        raise TrainingStopped(f"a loss at step {step} is not a number; lower the learning rates")
    if device.type == "cuda" and step == GUARD_STEP and rate < LEAST_TOKENS_PER_SECOND:
        raise TrainingStopped(f"{rate:.0f} tokens/s at step {step}; profile the step first")


def totals(trainer: Trainer, step: int) -> dict[str, float]:
    """What the whole run read."""
    clean = step * trainer.rows * CLEAN
    found = {"million_tokens": clean / 1e6, "epochs": clean / len(trainer.stream)}
    if trainer.device.type == "cuda":
        found["peak_memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return {name: round(value, 3) for name, value in found.items()}


def keep(trainer: Trainer, out: Path, step: int, progress: float, log: Log) -> None:
    """Save weights and state, and drop all weights but these and the ones before."""
    earlier = sorted(out.glob("weights-*"))
    facts = {"step": step, "progress": progress} | totals(trainer, step)
    trainer.save_weights(out / f"weights-{step:06d}", facts)
    trainer.save_state(out / "state.pt", step, progress)
    for stale in earlier[:-1]:
        shutil.rmtree(stale)
    log.write(step=step, saved=f"weights-{step:06d}")


def options_from(arguments: list[str] | None) -> argparse.Namespace:
    """The command line's settings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="packed token folders")
    parser.add_argument("--out", type=Path, default=Path(".train/run"))
    parser.add_argument("--minutes", type=float, required=True, help="from start to end of all")
    parser.add_argument("--steps", type=int, default=sys.maxsize, help="stop after so many")
    parser.add_argument("--rows", type=int, default=80, help="rows in a batch")
    parser.add_argument("--save-minutes", type=float, default=4.0)
    parser.add_argument("--resume", type=Path, help="a state.pt to go on from")
    parser.add_argument("--start", type=Path, help="an exported checkpoint to take weights from")
    parser.add_argument("--progress", type=float, default=0.0, help="where its schedule stood")
    parser.add_argument("--causal", action="store_true", help="train the left-to-right twin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, help="only so many layers, for trials")
    parser.add_argument("--tiny", action="store_true", help="a model for trials on a CPU")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    started = time.time()
    options = options_from(arguments)
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = TINY if options.tiny else ModelConfig()
    if options.layers:
        config = replace(config, layer_pattern=config.layer_pattern[-options.layers :])
    weights = None
    if options.start:
        from training.export import fused_weights  # needs transformers, which training does not

        config, weights = fused_weights(options.start)
    log = Log(options.out, started)
    trainer = Trainer(config, options.data, options.rows, device, weights, options.causal)
    log.write(
        parameters=parameter_count(trainer.model),
        training_tokens=len(trainer.stream),
        device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        torch=torch.__version__,
    )
    try:
        run(trainer, options, log, started)
    except TrainingStopped as reason:
        log.write(stopped=str(reason))
        sys.exit(7)


if __name__ == "__main__":
    main()
