"""A model that learns in a minute to repeat its prompt in the canvas, for tests of convergence."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from tests.checkpoints import byte_tokenizer
from training.export import export
from training.model import DiffusionModel, ModelConfig, rotations

LENGTH = 32
"""Tokens of the prompt, and of the canvas."""
CONFIG = ModelConfig(
    vocab_size=264, hidden_size=128, intermediate_size=256, expert_intermediate_size=128,
    query_heads=4, key_value_heads=2, head_size=32, layer_pattern=("sliding", "full") * 2,
    sliding_window=128, max_positions=512, canvas_length=LENGTH,
)  # fmt: skip
FIRST, LAST = 16, 256
"""Ids that are copied; those below are special."""
STEPS, ROWS, RATE = 450, 16, 2e-3


def prompts(count: int, generator: torch.Generator) -> Tensor:
    """Random ids [count, LENGTH]."""
    return torch.randint(FIRST, LAST, (count, LENGTH), generator=generator)


def visible() -> Tensor:
    """Who sees whom, bool [query, key]: a causal prompt, and a canvas that sees everything."""
    mask = torch.ones(2 * LENGTH, 2 * LENGTH, dtype=torch.bool)
    mask[:LENGTH] = torch.ones(2 * LENGTH, 2 * LENGTH, dtype=torch.bool).tril()[:LENGTH]
    return mask


def trained(seed: int = 0) -> DiffusionModel:
    """Corruption by uniform tokens, t uniform, self-conditioning at every second update."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = DiffusionModel(CONFIG)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, STEPS, pct_start=0.1)
    rotation, mask = rotations(CONFIG, torch.arange(2 * LENGTH)), visible()
    blank = torch.zeros(ROWS, LENGTH, CONFIG.hidden_size)
    for step in range(STEPS):
        clean = prompts(ROWS, generator)
        level = torch.rand(ROWS, 1, generator=generator)
        replaced = torch.rand(ROWS, LENGTH, generator=generator) < level
        shown = torch.where(replaced, prompts(ROWS, generator), clean)
        soft = blank
        if step % 2:
            with torch.no_grad():
                states = model(clean, shown, blank, rotation, mask)
                soft = model.soften(states[:, LENGTH:])
        states = model(clean, shown, soft, rotation, mask)[:, LENGTH:]
        loss = model.losses(states, clean).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model


def write(folder: Path, seed: int = 0) -> None:
    """Train, and write a checkpoint."""
    model = trained(seed)
    weights = {name: value.detach() for name, value in model.named_parameters()}
    export(CONFIG, weights, folder, None)
    byte_tokenizer(folder)
