"""One training run's model, optimiser and data: a step, a validation, a checkpoint."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask

from training.corruption import Task
from training.model import DiffusionModel, Mask, ModelConfig, Rotation, parameter_count, rotations
from training.optim import Optimiser, to_fp8
from training.rows import (
    CLEAN,
    FILL_IN_LAYOUTS,
    PLAIN_LAYOUTS,
    ROW,
    Batch,
    Layout,
    PlainRows,
    Stream,
    fill_in_batch,
    is_visible,
    newline_table,
)
from training.unpack import unpack

FILL_IN_SHARE = 0.70
RATE_WARM_UP_STEPS = 80
DECAY_SHARE = 0.45
"""Last part of the run, over which the learning rate falls to 0."""
FP8_SHARE = 0.15
"""Last part of the run, in which the model computes with what the FP8 file will hold."""
CAUSAL_WEIGHT = (1.0, 0.4)
"""Weight of the causal loss at the start and at the end of the run."""
VALIDATION_LAYOUT = Layout(True, 1, 64)
WEIGHT_SHARDS = 2


@dataclass(frozen=True)
class View:
    """A layout's attention mask and rotary tables on the device."""

    mask: Mask
    rotation: dict[str, Rotation]
    pairs: int
    """Query-key pairs that the mask lets through, of one row."""


def make_view(layout: Layout, config: ModelConfig, device: torch.device, length: int) -> View:
    """Mask and tables of the first ``length`` tokens of ``layout``: flex_attention's on a GPU,
    dense elsewhere."""
    visibility = layout.visibility().to(device)
    index = torch.arange(length, device=device)
    dense = is_visible(visibility, index[:, None], index[None])
    mask: Mask = dense
    if device.type == "cuda":

        def rule(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return is_visible(visibility, query, key)

        mask = create_block_mask(rule, None, None, length, length, device=device)
    positions = layout.positions()[:length].to(device)
    return View(mask, rotations(config, positions), int(dense.sum()))


def row_flops(model: DiffusionModel, pairs: int, length: int) -> float:
    """Floating-point operations of the forward pass of one row, of which ``length`` tokens are
    read or refined."""
    config = model.config
    hidden = sum(parameter_count(layer) for layer in model.layers)
    linear = 2 * length * (hidden + model.embedding.numel())
    conditioning = 2 * (length - CLEAN) * parameter_count(model.self_conditioning)
    attention = 4 * len(model.layers) * config.query_heads * config.head_size * pairs
    return linear + conditioning + attention


def rate_factor(step: int, progress: float) -> float:
    """Warm-up, plateau, then linear to 0 at ``progress`` 1."""
    warm = min(1.0, (step + 1) / RATE_WARM_UP_STEPS)
    return warm * min(1.0, max(0.0, (1 - progress) / DECAY_SHARE))


def halves(values: Tensor) -> tuple[Tensor, Tensor]:
    """``[rows, length]`` as its part of the clean tokens and its part of the canvases."""
    return values[:, :CLEAN], values[:, CLEAN:]


class Figures:
    """Running sums on the device; reading them is the only synchronisation."""

    def __init__(self, device: torch.device, causal_only: bool) -> None:
        self._causal_only = causal_only
        self._losses = torch.zeros(4, 2, dtype=torch.float64, device=device)
        self._deciles = torch.zeros(len(Task) * 10, 2, device=device)

    @torch.no_grad()
    def add(self, batch: Batch, losses: Tensor) -> None:
        """Count per-position ``losses`` ``[rows, ROW]``, or ``[rows, CLEAN]`` of a twin."""
        causal, canvas = halves(losses.detach().float())
        corrupted = batch.canvases.corrupted.float()
        text = (batch.causal_weight > 0).float()
        counted = [(causal, text), (causal, batch.middle.float())]
        if not self._causal_only:
            counted += [(canvas, batch.canvases.weight), (canvas, corrupted)]
            bucket = (batch.canvases.noise * 10).long().clamp(max=9) + batch.canvases.task * 10
            sums = torch.stack(((canvas * corrupted).flatten(), corrupted.flatten()), 1)
            self._deciles.index_add_(0, bucket.flatten(), sums)
        for row, (values, weight) in enumerate(counted):
            self._losses[row] += torch.stack(((values * weight).sum(), weight.sum()))

    def read(self) -> dict[str, Any]:
        """Mean losses since the last reading; corrupted ones also by task and decile of noise."""
        sums, counts = self._losses.t().tolist()
        names = ("causal", "causal_middle", "canvas", "canvas_corrupted")
        means = {
            name: round(total / max(count, 1e-9), 4)
            for name, total, count in zip(names, sums, counts, strict=True)
        }
        deciles = (self._deciles[:, 0] / self._deciles[:, 1].clamp(min=1)).view(len(Task), 10)
        table = {task.name.lower(): deciles[task].tolist() for task in Task}
        self._losses.zero_()
        self._deciles.zero_()
        rounded = {task: [round(value, 3) for value in values] for task, values in table.items()}
        return means | {"deciles": rounded}


class Trainer:
    """Model, optimiser and data of one run."""

    def __init__(
        self,
        config: ModelConfig,
        data: list[Path],
        rows: int,
        device: torch.device,
        weights: dict[str, Tensor] | None = None,
        causal_only: bool = False,
    ) -> None:
        """``weights`` are fused fp32 values to start from instead of random ones.

        ``causal_only`` trains a left-to-right model on the same rows: their clean tokens alone.
        """
        self.config, self.rows, self.device = config, rows, device
        self.causal_only, self.length = causal_only, CLEAN if causal_only else ROW
        self.model = DiffusionModel(config).to(device)
        if weights is not None:
            self.model.load_state_dict(weights)
        self.optimiser = Optimiser(self.model)  # takes its fp32 masters before the cast below
        if device.type == "cuda":
            self.model.to(torch.bfloat16)
            self.model.compile_regions()
        newline = newline_table(data[0] / "tokenizer.json", config.vocab_size).to(device)
        self.stream = Stream.build(unpack(data), newline)
        self.plain_rows = PlainRows(self.stream)
        layouts = [*PLAIN_LAYOUTS, *FILL_IN_LAYOUTS]
        self.views = {layout: make_view(layout, config, device, self.length) for layout in layouts}
        self.figures = Figures(device, causal_only)
        self.choice = random.Random(3)
        self.blank = torch.zeros(
            rows,
            self.length - CLEAN,
            config.hidden_size,
            device=device,
            dtype=self.model.embedding.dtype,
        )
        self.held_out = dict(self._held_out_batches(data[0], newline))

    def _held_out_batches(self, data: Path, newline: Tensor) -> Iterator[tuple[str, list[Batch]]]:
        """Two fixed batches of each held-out package: running text, and holes of known length."""
        for file in sorted(data.glob("hold_*.npy")):
            stream = Stream.build(np.load(file), newline)
            with torch.random.fork_rng():
                torch.manual_seed(7)
                plain = PlainRows(stream).batch(self.rows, Layout(False, 1, 64))
                holes = fill_in_batch(stream, self.rows, VALIDATION_LAYOUT, hardest=True)
            yield file.stem.removeprefix("hold_"), [plain, holes]

    def draw(self) -> Batch:
        """The next training batch."""
        if self.choice.random() < FILL_IN_SHARE:
            layout = self.choice.choices(*zip(*FILL_IN_LAYOUTS.items(), strict=True))[0]
            return fill_in_batch(self.stream, self.rows, layout)
        layout = self.choice.choices(*zip(*PLAIN_LAYOUTS.items(), strict=True))[0]
        return self.plain_rows.batch(self.rows, layout)

    def states(self, batch: Batch, soft: Tensor) -> Tensor:
        """Last-layer states ``[rows, length, hidden]``."""
        view, shown = self.views[batch.layout], batch.canvases.shown[:, : self.length - CLEAN]
        return self.model(batch.clean, shown, soft, view.rotation, view.mask)

    def losses(self, batch: Batch, states: Tensor) -> Tensor:
        """Cross-entropy ``[rows, length]`` in both modes."""
        target = torch.cat((batch.causal_target, batch.canvases.target), 1)
        return self.model.losses(states, target[:, : self.length].contiguous())

    def step(self, step: int, progress: float, conditioned: bool) -> float:
        """One update; returns the floating-point operations that it took."""
        batch = self.draw()
        soft = self.blank
        if conditioned:
            with torch.no_grad():
                soft = self.model.soften(self.states(batch, soft)[:, CLEAN:].contiguous())
        losses = self.losses(batch, self.states(batch, soft))
        causal, canvas = halves(losses)
        loss = (causal * batch.causal_weight).sum() / batch.causal_weight.sum()
        if not self.causal_only:
            first, last = CAUSAL_WEIGHT
            weight = batch.canvases.weight
            loss = loss * (first + (last - first) * progress)
            loss = loss + (canvas * weight).sum() / weight.sum()
        loss.backward()
        factor = rate_factor(step, progress)
        self.optimiser.step(step, factor, fp8=progress >= 1 - FP8_SHARE)
        self.figures.add(batch, losses)
        passes = 4 if conditioned else 3  # forward, twice that for backward, one more to condition
        pairs = self.views[batch.layout].pairs
        return passes * self.rows * row_flops(self.model, pairs, self.length)

    @torch.no_grad()
    def validate(self) -> dict[str, dict[str, float]]:
        """Losses on the held-out packages, and the share of holes that are right at once: by the
        greedy causal mode with its end token, and by one denoise step at the known length."""
        return {name: self._validate(*batches) for name, batches in self.held_out.items()}

    def _validate(self, plain: Batch, holes: Batch) -> dict[str, float]:
        causal = self.losses(plain, self.states(plain, self.blank))[:, : CLEAN - 1].mean()
        states = self.states(holes, self.blank)
        middle, canvas = halves(self.losses(holes, states).float())
        prompt = holes.layout.prompt_length
        guess = self.model.logits(states[:, prompt - 1 : CLEAN - 1]).argmax(-1)
        right = guess == holes.causal_target[:, prompt - 1 : CLEAN - 1]
        causal_exact = (right | ~holes.middle[:, prompt - 1 : CLEAN - 1]).all(1)
        values = {
            "causal": causal,
            "causal_middle": (middle * holes.middle).sum() / holes.middle.sum(),
            "causal_exact": causal_exact.float().mean(),
        }
        if not self.causal_only:
            hole, width = holes.canvases.corrupted, holes.layout.canvas_width
            guess = self.model.logits(states[:, CLEAN : CLEAN + width]).argmax(-1)
            right = (guess == holes.canvases.target[:, :width]) | ~hole[:, :width]
            values["canvas_all_noise"] = (canvas * hole).sum() / hole.sum()
            values["one_step_exact"] = right.all(1).float().mean()
        return {name: round(float(value), 4) for name, value in values.items()}

    def save_weights(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write the working weights: matrices as FP8, norms in fp32, in shards of like size."""
        shards: list[dict[str, Tensor]] = [{} for _ in range(WEIGHT_SHARDS)]
        sizes = [0] * WEIGHT_SHARDS
        parameters = sorted(self.model.named_parameters(), key=lambda pair: -pair[1].numel())
        for name, parameter in parameters:
            values = parameter.detach()
            values = to_fp8(values) if values.dim() > 1 else values.float()
            shard = sizes.index(min(sizes))
            shards[shard][name] = values.cpu().contiguous()
            sizes[shard] += values.numel()
        writing = folder.with_name("writing")
        writing.mkdir(parents=True, exist_ok=True)
        for number, shard in enumerate(shards):
            save_file(shard, writing / f"weights-{number}.safetensors")
        record = facts | {"config": asdict(self.config)}
        (writing / "weights.json").write_text(json.dumps(record, indent=1) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        writing.rename(folder)  # complete or not there at all

    def save_state(self, file: Path, step: int, progress: float) -> None:
        """Write what ``--resume`` needs."""
        record = {"optimiser": self.optimiser.state_dict(), "step": step, "progress": progress}
        torch.save(record, file.with_suffix(".writing"))
        file.with_suffix(".writing").replace(file)

    def load_state(self, file: Path) -> tuple[int, float]:
        """Take over a saved run; returns its step and progress."""
        record = torch.load(file, map_location=self.device, weights_only=True)
        fp8 = record["progress"] >= 1 - FP8_SHARE
        self.optimiser.load_state_dict(record["optimiser"], fp8)
        return record["step"], record["progress"]
