"""Embeddings of rows that denoise, mixed with what the last step says of them.

Upstream's gated MLP, whose small operations PyTorch may join into few launches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.fx.experimental._config
import torch.nn.functional as F
from torch import Tensor

from dg_engine.vllm_plugin.states import CanvasStates, Phase, Whole

Mix = Callable[[Tensor, Tensor, Tensor, Tensor], None]


class Conditioning:
    """Over the states of requests and a model's `self_conditioning`."""

    def __init__(self, states: CanvasStates, module: Any) -> None:
        self._states = states
        self._module = module
        self._compiled: Mix | None = None

    def compile(self, backend: str | Callable[..., Any] = "inductor") -> None:
        """Let PyTorch join what is small; `rehearse` compiles it."""
        compiled = cast("Callable[..., Any]", vars(torch)["compile"])  # partly untyped
        self._compiled = compiled(self._mix, dynamic=True, backend=backend)

    def leave_eager(self) -> None:
        """Take `compile` back."""
        self._compiled = None

    def __call__(self, embeds: Tensor, rows: Tensor, slots: Tensor, positions: Tensor) -> None:
        """Mix in place what stands in rows that denoise.

        A row that is read causally keeps its plain embedding, as prompts do.

        Args:
            embeds: plain embeddings [tokens, hidden].
            rows: of `embeds` that may denoise, int64 [n].
            slots, positions: each one's request, and its place in the canvas, int64 [n].
        """
        # One row would be a variant of its own, which a greedy line alone has.
        mix = self._compiled if self._compiled is not None and len(rows) > 1 else self._mix
        mix(embeds, rows, slots, positions)

    def rehearse(self) -> None:
        """Compile what a call may need, and change nothing."""
        slots, width = self._states.ids.shape
        count = slots * width
        rows = torch.arange(count, device=self._states.device)
        embeds = self._states.conditioning.new_zeros(count + 1, self._states.conditioning.shape[2])
        # Sizes that happen to be equal now need not be so later.
        sizes: Any = torch.fx.experimental._config
        with sizes.patch(use_duck_shape=False):
            self(embeds, rows, rows // width, rows % width)

    def _mix(self, embeds: Tensor, rows: Tensor, slots: Tensor, positions: Tensor) -> None:
        states, module = self._states, self._module
        plain, soft = embeds[rows], states.conditioning[slots, positions]
        given = _normed(soft.to(plain.dtype), module.pre_norm)
        gate = F.gelu(F.linear(given, module.gate_proj.weight), approximate="tanh")
        signal = F.linear(gate * F.linear(given, module.up_proj.weight), module.down_proj.weight)
        mixed = _normed(plain + signal, module.post_norm)
        denoising = states.whole[slots, Whole.PHASE] == int(Phase.DENOISE)
        embeds[rows] = torch.where(denoising[:, None], mixed, plain)


def _normed(rows: Tensor, norm: Any) -> Tensor:
    """As vLLM's RMSNorm, rounded where it rounds."""
    wide = rows.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)
    if norm.has_weight:
        wide = wide.to(norm.weight.dtype) * norm.weight
    return wide.to(rows.dtype)
