"""dg-tiny in NVFP4, as a bench writes it: what is packed is what the plain checkpoint holds."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.gpu.nvfp4 import GROUP, LEVELS, converted, pack


def unpacked(packed: dict[str, Tensor], name: str) -> Tensor:
    """A matrix read by the format's own words."""
    numbers, scales = packed[f"{name}.weight_packed"], packed[f"{name}.weight_scale"].float()
    codes = torch.stack((numbers & 15, numbers >> 4), -1).flatten(1).long()
    values = LEVELS[codes & 7] * torch.where(codes > 7, -1.0, 1.0)
    return values * scales.repeat_interleave(GROUP, 1) / packed[f"{name}.weight_global_scale"]


def test_every_number_is_the_nearest_that_its_group_has():
    weight = torch.randn(6, 64, generator=torch.Generator().manual_seed(1))
    weight[2, 16:32] = 0.0
    numbers, scales, worth = pack(weight, 512.0)
    assert numbers.shape == (6, 32)
    assert scales.shape == (6, 4)
    step = scales.float().repeat_interleave(GROUP, 1) / 512
    levels = torch.cat((-LEVELS, LEVELS))
    best = ((weight[..., None] - levels * step[..., None]).abs()).amin(-1)
    torch.testing.assert_close((weight - worth.float()).abs(), best)
    assert (worth[2, 16:32] == 0).all()


def test_both_checkpoints_hold_the_same_numbers():
    chance = torch.Generator().manual_seed(2)
    prefix = "model.decoder.layers.3"
    tensors = {
        f"{prefix}.self_attn.q_proj.weight": torch.randn(8, 32, generator=chance),
        f"{prefix}.experts.gate_up_proj": torch.randn(2, 8, 32, generator=chance) / 9,
        f"{prefix}.experts.down_proj": torch.randn(2, 32, 16, generator=chance) / 9,
        f"{prefix}.router.proj.weight": torch.randn(2, 32, generator=chance),
        f"{prefix}.input_layernorm.weight": torch.ones(32),
    }
    packed, plain = converted(tensors)
    assert plain.keys() == tensors.keys()
    q = f"{prefix}.self_attn.q_proj"
    assert torch.equal(unpacked(packed, q), plain[f"{q}.weight"].float())
    for number in range(2):
        parts = [f"{prefix}.experts.{number}.{part}_proj" for part in ("gate", "up")]
        both = torch.cat([unpacked(packed, part) for part in parts])
        assert torch.equal(both, plain[f"{prefix}.experts.gate_up_proj"][number].float())
        down = unpacked(packed, f"{prefix}.experts.{number}.down_proj")
        assert torch.equal(down, plain[f"{prefix}.experts.down_proj"][number].float())
    for name in (f"{prefix}.router.proj.weight", f"{prefix}.input_layernorm.weight"):
        assert torch.equal(packed[name], plain[name])
    for name, one in plain.items():
        assert (one.float() - tensors[name]).norm() < 0.12 * tensors[name].norm()
