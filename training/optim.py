"""Muon for hidden matrices, Adam for the rest; fp32 masters behind the working weights.

Muon orthogonalises the momentum of each matrix (Jordan et al. 2024,
https://kellerjordan.github.io/posts/muon/); all matrices of one shape are one batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from training.model import DiffusionModel, Piece

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5
FP8_LARGEST = 448.0
"""Largest finite value of float8_e4m3fn; a plain conversion would turn more into NaN."""


def to_fp8(values: Tensor) -> Tensor:
    """Saturating conversion to float8_e4m3fn."""
    return values.float().clamp(-FP8_LARGEST, FP8_LARGEST).to(torch.float8_e4m3fn)


def working(master: Tensor, fp8: bool) -> Tensor:
    """What the model computes with: the master, or what an FP8 file of it would hold.

    The gradient at the rounded weights moves the master unchanged (straight-through).
    """
    return to_fp8(master).float() if fp8 else master


def orthogonalise(update: Tensor) -> Tensor:
    """Push the singular values of ``[batch, rows, columns]`` towards 1 by Newton-Schulz steps."""
    tall = update.size(-2) > update.size(-1)
    values = update.mT if tall else update
    if values.is_cuda:
        values = values.bfloat16()
    values = values / (values.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    first, second, third = NEWTON_SCHULZ
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = values @ values.mT
        values = first * values + (second * square + third * (square @ square)) @ values
    return (values.mT if tall else values).float()


def gradient(parameter: Tensor) -> Tensor:
    """The gradient, zeros where the loss does not reach: a twin never conditions on itself."""
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


class MatrixGroup:
    """Muon's state for all matrices of one shape, ``[matrices, rows, columns]``."""

    def __init__(self, pieces: list[Piece], parameters: dict[str, Tensor]) -> None:
        self.pieces = pieces
        self._parameters = [parameters[p.parameter] for p in pieces]
        self.master = torch.stack([weight.float() for weight in self.weights()])
        self.momentum = torch.zeros_like(self.master)
        rows, columns = self.master.shape[1:]
        self._step_scale = max(1.0, rows / columns) ** 0.5

    def weights(self) -> list[Tensor]:
        """Views of the working weights; taken anew, as casting the model replaces their storage."""
        pairs = zip(self.pieces, self._parameters, strict=True)
        return [weight.data[piece.start : piece.stop] for piece, weight in pairs]

    def gradients(self) -> Tensor:
        """fp32 gradients stacked as the master is."""
        pairs = zip(self.pieces, self._parameters, strict=True)
        return torch.stack([gradient(q)[p.start : p.stop] for p, q in pairs]).float()

    def step(self, rate: float, momentum: float, decay: float) -> None:
        gradient = self.gradients()
        self.momentum.lerp_(gradient, 1 - momentum)
        update = orthogonalise(gradient.lerp_(self.momentum, momentum))
        self.master.mul_(1 - rate * decay).add_(update, alpha=-rate * self._step_scale)

    def publish(self, fp8: bool) -> None:
        """Write the working weights."""
        torch._foreach_copy_(self.weights(), list(working(self.master, fp8).unbind()))


class Muon:
    """Momentum SGD whose matrix updates are orthogonal."""

    def __init__(self, model: DiffusionModel, decay: float = 0.02) -> None:
        parameters: dict[str, Tensor] = dict(model.named_parameters())
        shapes: dict[tuple[int, int], list[Piece]] = {}
        for piece in model.pieces():
            columns = parameters[piece.parameter].size(1)
            shapes.setdefault((piece.stop - piece.start, columns), []).append(piece)
        self.groups = [MatrixGroup(pieces, parameters) for pieces in shapes.values()]
        self._decay = decay

    @torch.no_grad()
    def step(self, rate: float, momentum: float, fp8: bool) -> None:
        """Move the masters by one update of size ``rate``, then write the working weights."""
        for group in self.groups:
            group.step(rate, momentum, self._decay)
            group.publish(fp8)

    def state(self) -> list[tuple[Tensor, Tensor]]:
        """Master and momentum of every group."""
        return [(group.master, group.momentum) for group in self.groups]


class Adam:
    """Adam for the embedding, which goes to FP8 as matrices do, and for the norms, which do not."""

    BETAS = (0.9, 0.95)

    def __init__(self, model: DiffusionModel) -> None:
        matrices = {piece.parameter for piece in model.pieces()}
        rest = {name: p for name, p in model.named_parameters() if name not in matrices}
        self._parameters = list(rest.values())
        self._is_matrix = [parameter.dim() > 1 for parameter in self._parameters]
        self.master = [p.detach().float().clone() for p in self._parameters]
        self.mean = [torch.zeros_like(master) for master in self.master]
        self.square = [torch.zeros_like(master) for master in self.master]
        self.steps = 0

    @torch.no_grad()
    def step(self, rate: float, fp8: bool) -> None:
        """Move the masters by one update of size ``rate``, then write the working weights."""
        self.steps += 1
        first, second = self.BETAS
        gradients = [gradient(parameter).float() for parameter in self._parameters]
        torch._foreach_lerp_(self.mean, gradients, 1 - first)
        torch._foreach_mul_(self.square, second)
        torch._foreach_addcmul_(self.square, gradients, gradients, 1 - second)
        size = torch._foreach_sqrt(self.square)
        torch._foreach_div_(size, (1 - second**self.steps) ** 0.5)
        torch._foreach_add_(size, 1e-10)
        torch._foreach_addcdiv_(self.master, self.mean, size, value=-rate / (1 - first**self.steps))
        self.publish(fp8)

    def publish(self, fp8: bool) -> None:
        """Write the working weights."""
        pairs = zip(self.master, self._is_matrix, strict=True)
        values = [working(master, fp8 and is_matrix) for master, is_matrix in pairs]
        torch._foreach_copy_([p.data for p in self._parameters], values)


class Optimiser:
    """Both optimisers as one, with one state for checkpoints."""

    MATRIX_RATE = 0.02
    REST_RATE = 3e-3
    MOMENTUM_STEPS = 200
    """Steps over which Muon's momentum rises from 0.85 to 0.95."""

    def __init__(self, model: DiffusionModel) -> None:
        self._model = model
        self.muon, self.adam = Muon(model), Adam(model)

    def step(self, step: int, factor: float, fp8: bool) -> None:
        """One update with both base rates multiplied by ``factor``; clears the gradients."""
        momentum = 0.85 + 0.10 * min(1.0, step / self.MOMENTUM_STEPS)
        self.muon.step(self.MATRIX_RATE * factor, momentum, fp8)
        self.adam.step(self.REST_RATE * factor, fp8)
        self._model.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        """All masters and moments."""
        adam = {"master": self.adam.master, "mean": self.adam.mean, "square": self.adam.square}
        return {"muon": self.muon.state(), "adam": adam, "adam_steps": self.adam.steps}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any], fp8: bool) -> None:
        """Take over a saved state and write the working weights from it."""
        for group, (master, momentum) in zip(self.muon.groups, state["muon"], strict=True):
            group.master.copy_(master)
            group.momentum.copy_(momentum)
            group.publish(fp8)
        for name, values in state["adam"].items():
            torch._foreach_copy_(getattr(self.adam, name), values)
        self.adam.steps = state["adam_steps"]
        self.adam.publish(fp8)
