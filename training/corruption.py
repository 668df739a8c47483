"""What a canvas shows and what it must become: holes, end-token fill, old lines, noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from enum import IntEnum

import torch
from torch import Tensor

from training.tokenizer import SPECIAL_TOKENS, VOCABULARY

FIRST_ORDINARY = len(SPECIAL_TOKENS)
"""Noise never uses the special ids below this one."""
MIN_NOISE = 0.02
HOLE_FULL_NOISE, PLAIN_FULL_NOISE = 0.30, 0.13
"""Share of canvases whose hole is all noise: every answer starts there."""
EXACT_SHARE, OVER_WIDE_SHARE, OPEN_SHARE = 0.45, 0.22, 0.21
"""Tasks of fill-in-the-middle canvases; the rest are edits."""
TWO_SHARE = 0.50
"""Exact canvases that get a second hole, where the prompt does not show the suffix."""
MOST_SECOND = 16
MOST_SPARE = 16
MOST_SHIFT = 3
OLD_NOISE = 0.40
"""Largest share of an edit's old tokens that are others than the new ones, shifts aside."""
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
    TWO = 5
    """as EXACT, with a second hole further on"""
    EDIT = 6
    """as OVER_WIDE, over an older version of the lines instead of noise"""


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


def hole_tasks(hidden: Tensor) -> Tensor:
    """Random tasks of fill-in-the-middle canvases, shaped as ``hidden``: where the prompt does not
    show the suffix."""
    kind, second = torch.rand(2, *hidden.shape, device=hidden.device)
    exact = torch.where(hidden & (second < TWO_SHARE), Task.TWO, Task.EXACT)
    task = torch.where(kind < EXACT_SHARE + OVER_WIDE_SHARE, Task.OVER_WIDE, Task.OPEN)
    task = torch.where(kind < EXACT_SHARE, exact, task)
    return torch.where(kind < EXACT_SHARE + OVER_WIDE_SHARE + OPEN_SHARE, task, Task.EDIT)


def hole_canvases(
    ahead: Tensor,
    hole: Tensor,
    hidden: Tensor,
    canvases: int,
    width: int,
    end: int,
    task: Tensor | None = None,
    levels: Tensor | None = None,
) -> Canvases:
    """``canvases`` canvases for each segment, ``[segments * canvases, width]``.

    ``ahead`` ``[segments, >= width]`` holds the ids from the hole's start on, ``hole``
    ``[segments]`` its length, ``hidden`` ``[segments]`` whether its suffix is not in the prompt.
    ``task`` and ``levels`` ``[segments * canvases]`` replace the random ones.
    """
    count, device = len(ahead) * canvases, ahead.device
    if task is None:
        task = hole_tasks(hidden.repeat_interleave(canvases, output_size=count))
    levels = noise_levels(count, HOLE_FULL_NOISE, device) if levels is None else levels
    length = hole.repeat_interleave(canvases, output_size=count)
    room = width - length
    spare = torch.minimum(torch.randint(1, MOST_SPARE + 1, (count,), device=device), room)
    fixed = (task == Task.EXACT) | (task == Task.TWO)
    spare = torch.where(fixed, 0, torch.where(task == Task.OPEN, room, spare))
    place = torch.arange(width, device=device)[None]
    length, wide = length[:, None], (length + spare)[:, None]
    source = torch.where(place < length, place, (place - spare[:, None]).clamp(min=0))
    segment = torch.arange(count, device=device) // canvases
    target = ahead[segment[:, None], source]
    target = torch.where((place >= length) & (place < wide), end, target)
    inside = (place < wide) | (second_hole(length, width) & (task == Task.TWO)[:, None])
    weight = torch.where(inside, HOLE_WEIGHT, KNOWN_WEIGHT)
    weight = torch.where((place < wide) & (place > length), LATER_END_WEIGHT, weight)
    noised = corrupt(target, inside, weight, task, levels)
    others = ahead[segment[:, None], torch.randint(0, ahead.size(1), target.shape, device=device)]
    old = old_version(target, length, wide, others, levels)
    edited = (task == Task.EDIT)[:, None]
    shown = torch.where(edited, old, noised.shown)
    corrupted = torch.where(edited, old != target, noised.corrupted)
    return replace(noised, shown=shown, corrupted=corrupted)


def second_hole(length: Tensor, width: int) -> Tensor:
    """``[canvases, width]`` bool: a hole at least two tokens behind the first one, whose lengths
    are ``length`` ``[canvases, 1]``; nothing where there is no room."""
    start = length + 2 + (torch.rand_like(length, dtype=torch.float) * (width - length - 2)).long()
    drawn = torch.rand_like(length, dtype=torch.float) * math.log(MOST_SECOND + 1)
    place = torch.arange(width, device=length.device)[None]
    return (place >= start) & (place < start + drawn.exp().long())


def old_version(
    target: Tensor, length: Tensor, wide: Tensor, others: Tensor, levels: Tensor
) -> Tensor:
    """What an edit's canvas shows, ``[canvases, width]``: ``target`` with the tokens of its hole
    behind a random place moved by up to MOST_SHIFT, and some replaced by ``others``.

    ``length`` and ``wide`` ``[canvases, 1]`` are the hole's length without and with its spare
    tokens. Tokens that move in from outside the old lines are ``others`` as well.
    """
    shape, device = length.shape, target.device
    shift = torch.randint(-MOST_SHIFT, MOST_SHIFT + 1, shape, device=device)
    turn = (torch.rand(shape, device=device) * length).long()
    place = torch.arange(target.size(1), device=device)[None]
    moved = place >= turn
    source = torch.where(moved, place - shift, place)
    kept = (source >= turn) | ~moved
    old = target.gather(1, source.clamp(0, target.size(1) - 1))
    other = torch.rand(target.shape, device=device) < OLD_NOISE * levels[:, None]
    old = torch.where(kept & (source < length) & ~other, old, others)
    beyond = torch.where(torch.rand(target.shape, device=device) < 0.5, target, others)
    old = torch.where(place < length + shift, old, beyond)
    return torch.where(place < wide, old, target)


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
