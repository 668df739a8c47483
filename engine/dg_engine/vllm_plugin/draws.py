"""Randomness that depends on a request's seed, step and position alone, for any batch.

A counter-based hash instead of generators: the draws of a mixed batch are one tensor expression,
and a request gets the same ones wherever and with whomever it is solved.
"""

from __future__ import annotations

import torch
from dg_kernels.reference import draw
from torch import Tensor

NOISE = 0
CANDIDATE = 1


def hashed(seeds: Tensor, counter: Tensor, positions: Tensor, stream: int) -> Tensor:
    """63 well-mixed bits per element; the arguments are int64 and broadcast."""
    mixed = _mix(seeds + _GOLDEN * (2 * counter + stream + 1))
    return _mix(mixed + _GOLDEN * (positions + 1)) & _POSITIVE


def noise_ids(seeds: Tensor, counter: Tensor, positions: Tensor, vocab_size: int) -> Tensor:
    """Uniform token ids, int64; counter 0 starts a canvas, n follows its n-th step."""
    return hashed(seeds, counter, positions, NOISE) % vocab_size


def candidate_seeds(seeds: Tensor, counter: Tensor, positions: Tensor) -> Tensor:
    """What `dg_kernels.reference.draw` takes for each position after step `counter`, int64."""
    return hashed(seeds, counter, positions, CANDIDATE)


class HashedDraws:
    """The same draws behind the reference sampler's `Draws`, one seed per row."""

    def __init__(self, seeds: list[int], vocab_size: int, device: torch.device) -> None:
        self._seeds = torch.tensor(seeds, device=device)[:, None]
        self._vocab_size = vocab_size
        self._noise_calls = 0
        self._candidate_calls = 0

    def noise(self, rows: int, canvas: int) -> Tensor:
        """See dg_engine.sampler.Draws."""
        counter = torch.tensor(self._noise_calls, device=self._seeds.device)
        self._noise_calls += 1
        positions = torch.arange(canvas, device=self._seeds.device)
        return noise_ids(self._seeds[:rows], counter, positions, self._vocab_size)

    def candidates(self, logits: Tensor) -> Tensor:
        """See dg_engine.sampler.Draws."""
        rows, canvas = logits.shape[:2]
        counter = torch.tensor(self._candidate_calls, device=self._seeds.device)
        self._candidate_calls += 1
        positions = torch.arange(canvas, device=self._seeds.device)
        seeds = candidate_seeds(self._seeds[:rows], counter, positions)
        return draw(logits.flatten(0, 1).float(), seeds.flatten()).view(rows, canvas)


_GOLDEN = -7046029254386353131  # 2**64 divided by the golden ratio, odd, as a signed number
_POSITIVE = 2**63 - 1


def _mix(x: Tensor) -> Tensor:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014) on wrapping int64."""
    x = (x ^ _shift(x, 30)) * -4658895280553007687
    x = (x ^ _shift(x, 27)) * -7723592293110705685
    return x ^ _shift(x, 31)


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical right shift; PyTorch's keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
