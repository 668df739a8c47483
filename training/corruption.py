"""What a canvas shows and what it must become: holes, end-token fill, and uniform noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import IntEnum

import torch
from torch import Tensor

from training.tokenizer import SPECIAL_TOKENS, VOCABULARY

FIRST_ORDINARY = len(SPECIAL_TOKENS)
"""Noise never uses the special ids below this one."""
MIN_NOISE = 0.02
HOLE_FULL_NOISE, PLAIN_FULL_NOISE = 0.30, 0.13
"""Share of canvases whose hole is all noise: every answer starts there."""
EXACT_SHARE, OVER_WIDE_SHARE = 0.50, 0.25
MOST_SPARE = 16
CONTINUATION_SHARE = 0.45
HOLE_WEIGHT, LATER_END_WEIGHT, KNOWN_WEIGHT = 1.0, 0.15, 0.1


class Task(IntEnum):
    """What is asked of a canvas."""

    CONTINUE = 0
    """all of it is noise"""
    GAP = 1
    """running text with a gap inside"""
    EXACT = 2
    """the hole has its length, the suffix follows"""
    OVER_WIDE = 3
    """up to 16 end tokens stand between the hole and the suffix"""
    OPEN = 4
    """end tokens to the end of the canvas, no suffix"""


@dataclass(frozen=True)
class Canvases:
    """Canvases, each field ``[canvases, width]`` or, reshaped, ``[rows, 512]``."""

    shown: Tensor
    target: Tensor
    weight: Tensor
    corrupted: Tensor
    noise: Tensor
    task: Tensor

    def reshape(self, *shape: int) -> Canvases:
        """The same canvases with every field in another shape."""
        return Canvases(*(getattr(self, field.name).reshape(shape) for field in fields(self)))


def noise_levels(count: int, full_share: float, device: torch.device) -> Tensor:
    """``[count]`` evenly spread levels from ``MIN_NOISE`` to 1; ``full_share`` of them are 1."""
    strata = torch.randperm(count, device=device) + torch.rand(count, device=device)
    return (strata / (count * (1 - full_share))).clamp(MIN_NOISE, 1.0)


def corrupt(target: Tensor, hole: Tensor, weight: Tensor, task: Tensor, levels: Tensor) -> Canvases:
    """Replace each position of ``hole`` ``[canvases, width]`` by a uniform token with its canvas's
    probability ``levels`` ``[canvases]``; ``task`` is ``[canvases]``."""
    noise = levels[:, None].expand_as(target)
    corrupted = hole & (torch.rand_like(noise) < noise)
    random = torch.randint_like(target, FIRST_ORDINARY, VOCABULARY)
    shown = torch.where(corrupted, random, target)
    return Canvases(shown, target, weight, corrupted, noise, task[:, None].expand_as(target))


def hole_tasks(count: int, device: torch.device) -> Tensor:
    """``[count]`` random tasks of fill-in-the-middle canvases."""
    kind = torch.rand(count, device=device)
    task = torch.where(kind < EXACT_SHARE + OVER_WIDE_SHARE, Task.OVER_WIDE, Task.OPEN)
    return torch.where(kind < EXACT_SHARE, Task.EXACT, task)


def hole_canvases(
    ahead: Tensor,
    hole: Tensor,
    canvases: int,
    width: int,
    end: int,
    task: Tensor | None = None,
    levels: Tensor | None = None,
) -> Canvases:
    """``canvases`` canvases for each segment, ``[segments * canvases, width]``.

    ``ahead`` ``[segments, >= width]`` holds the ids from the hole's start on, ``hole``
    ``[segments]`` its length. ``task`` and ``levels`` ``[segments * canvases]`` replace the
    random ones.
    """
    count, device = len(ahead) * canvases, ahead.device
    task = hole_tasks(count, device) if task is None else task
    levels = noise_levels(count, HOLE_FULL_NOISE, device) if levels is None else levels
    length = hole.repeat_interleave(canvases, output_size=count)
    room = width - length
    spare = torch.minimum(torch.randint(1, MOST_SPARE + 1, (count,), device=device), room)
    spare = torch.where(task == Task.EXACT, 0, torch.where(task == Task.OPEN, room, spare))
    place = torch.arange(width, device=device)[None]
    length, wide = length[:, None], (length + spare)[:, None]
    source = torch.where(place < length, place, (place - spare[:, None]).clamp(min=0))
    segment = torch.arange(count, device=device) // canvases
    target = ahead[segment[:, None], source]
    target = torch.where((place >= length) & (place < wide), end, target)
    inside = place < wide
    weight = torch.where(inside, HOLE_WEIGHT, KNOWN_WEIGHT)
    weight = torch.where(inside & (place > length), LATER_END_WEIGHT, weight)
    return corrupt(target, inside, weight, task, levels)


def plain_canvases(text: Tensor, is_cut: Tensor, newline: Tensor) -> Canvases:
    """Canvases over running text: all noise, or a gap with clean text on both sides.

    ``text`` ids and ``is_cut`` are ``[canvases, width]``, ``newline`` is ``[vocab]``. A gap starts
    at the canvas's start, at a character cut or anywhere, and ends at one of the next three
    newlines or after a log-uniform number of tokens.
    """
    count, width = text.shape
    device = text.device
    place = torch.arange(width, device=device)[None]
    kind = torch.rand(count, device=device)
    anywhere = torch.randint(0, width - 1, (count,), device=device)
    at_cut = (torch.rand(count, width, device=device) * is_cut).argmax(1)
    start = torch.where((kind < 0.70) & is_cut.any(1), at_cut, anywhere)
    start = torch.where(kind < 0.35, 0, start)[:, None]
    breaks = newline[text] & (place > start)
    several = torch.rand(count, 1, device=device)
    wanted = 1 + (several > 0.65).long() + (several > 0.85).long()
    hit = breaks & (breaks.cumsum(1) == wanted)
    drawn = torch.exp(torch.rand(count, 1, device=device) * math.log(0.75 * width)).long()
    by_length = (start + drawn.clamp(min=1)).clamp(max=width)
    by_line = torch.where(hit, place, width).amin(1, keepdim=True)
    use_line = (torch.rand(count, 1, device=device) < 0.6) & hit.any(1, keepdim=True)
    stop = torch.where(use_line, by_line, by_length)
    whole = torch.rand(count, device=device) < CONTINUATION_SHARE
    hole = whole[:, None] | ((place >= start) & (place < stop))
    weight = torch.where(hole, HOLE_WEIGHT, KNOWN_WEIGHT)
    task = torch.where(whole, Task.CONTINUE, Task.GAP)
    return corrupt(text, hole, weight, task, noise_levels(count, PLAIN_FULL_NOISE, device))
