"""Training rows: 1,024 clean tokens beside 512 canvas tokens, in a few static layouts.

Static layouts mean a handful of attention masks made once. Everything else about a row (where its
hole starts, how long it is, how much suffix the prompt shows) varies per row and is drawn on the
device without a synchronisation.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from training.corruption import Canvases, Task, hole_canvases, plain_canvases
from training.tokenise import TOKEN_MASK
from training.tokenizer import EOS, FILE_END, FIM_MIDDLE, FIM_PREFIX, FIM_SUFFIX, PAD

CLEAN, CANVAS = 1024, 512
"""Clean tokens in a row, and canvas tokens in a row."""
ROW = CLEAN + CANVAS
CUT_SHARE, LINE_SHARE = 0.45, 0.40
"""Holes that start at a character cut, and behind a newline token; the others start anywhere."""
FIRST_LINE_SHARE, MORE_LINES_SHARE = 0.60, 0.22
"""Holes that end at the next newline, and at the 2nd to 5th; the others have a random length."""
NO_SUFFIX_SHARE = 0.22
SUFFIX_TOKENS = (16, 256)
MIDDLE_WEIGHT = 4.0
"""The causal mode chooses lengths and judges candidates, so its middles count more."""


@dataclass(frozen=True)
class Layout:
    """How a row is divided: ``segments`` prompts, each followed by its share of the canvases.

    A plain row is one segment of running text whose canvases stand at their own place in its
    last CANVAS tokens; in a fill-in-the-middle row all canvases of a segment stand at the place of
    its middle.
    """

    fill_in: bool
    segments: int
    canvas_width: int

    @property
    def segment_length(self) -> int:
        return CLEAN // self.segments

    @property
    def reserve(self) -> int:
        """Clean tokens kept for the middle and its end token; the quarter left shows the suffix."""
        return 3 * self.canvas_width // 4

    @property
    def prompt_length(self) -> int:
        """Tokens of a segment up to and with its ``<fim_middle>``."""
        return self.segment_length - self.reserve

    @property
    def canvases(self) -> int:
        """Canvases of one segment."""
        return CANVAS // (self.segments * self.canvas_width)

    def visibility(self) -> Tensor:
        """``[3, ROW]`` int32: first visible clean key, the one after the last, canvas."""
        clean, canvas = torch.arange(CLEAN), torch.arange(CANVAS)
        number = canvas // self.canvas_width
        segment_start = clean // self.segment_length * self.segment_length
        if self.fill_in:
            canvas_start = number // self.canvases * self.segment_length
            canvas_limit = canvas_start + self.prompt_length
        else:
            canvas_start = torch.zeros_like(canvas)
            canvas_limit = CLEAN - CANVAS + number * self.canvas_width
        first = torch.cat((segment_start, canvas_start))
        limit = torch.cat((clean + 1, canvas_limit))
        return torch.stack((first, limit, torch.cat((torch.full_like(clean, -1), number)))).int()

    def positions(self) -> Tensor:
        """``[ROW]`` position of every token in the sequence it would have when served."""
        clean, canvas = torch.arange(CLEAN), torch.arange(CANVAS)
        if self.fill_in:
            canvas = self.prompt_length + canvas % self.canvas_width
        else:
            canvas += CLEAN - CANVAS
        return torch.cat((clean % self.segment_length, canvas))


PLAIN_LAYOUTS = {
    Layout(False, 1, 32): 0.25,
    Layout(False, 1, 64): 0.40,
    Layout(False, 1, 128): 0.25,
    Layout(False, 1, 256): 0.10,
}
FILL_IN_LAYOUTS = {
    Layout(True, 1, 64): 0.30,
    Layout(True, 1, 128): 0.12,
    Layout(True, 1, 256): 0.04,
    Layout(True, 2, 64): 0.20,
    Layout(True, 2, 32): 0.14,
    Layout(True, 4, 32): 0.14,
    Layout(True, 8, 16): 0.06,  # short prompts, as at the top of a small file
}


def is_visible(visibility: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The attention rule of all layouts, elementwise over indices into ``[clean | canvas]``."""
    clean = (key >= visibility[0, query]) & (key < visibility[1, query])
    canvas = (key >= CLEAN) & (visibility[2, key] == visibility[2, query])
    return (clean & (key < CLEAN)) | canvas


@dataclass(frozen=True)
class Stream:
    """A token stream on the device, with the places where holes may start."""

    tokens: Tensor
    """``[length]`` int16, ids below 8192; bit 15 marks the first token after a character cut."""
    newline: Tensor
    """``[vocab]`` bool: the token starts with a line break."""
    cuts: Tensor
    line_starts: Tensor

    @classmethod
    def build(cls, tokens: np.ndarray, newline: Tensor) -> Stream:
        device = newline.device
        held = torch.from_numpy(tokens.view(np.int16)).to(device)
        cuts = (held < 0).nonzero()[:, 0]
        found = [  # in portions: the ids of the whole stream as int64 would not fit a small device
            (newline[part.long() & TOKEN_MASK]).nonzero()[:, 0] + 1 + offset
            for part, offset in _portions(held)
        ]
        return cls(held, newline, cuts, torch.cat(found))

    def __len__(self) -> int:
        return self.tokens.numel()

    def read(self, index: Tensor) -> Tensor:
        """Ids int64 shaped as ``index``."""
        return self.tokens[index].long() & TOKEN_MASK

    def is_cut(self, index: Tensor) -> Tensor:
        return self.tokens[index] < 0


def _portions(tokens: Tensor, size: int = 1 << 24) -> list[tuple[Tensor, int]]:
    return [(tokens[at : at + size], at) for at in range(0, len(tokens), size)]


def newline_table(tokenizer: Path, vocab_size: int) -> Tensor:
    """``[vocab]`` bool from a byte-level tokenizer.json, where Ċ stands for a line break."""
    vocabulary = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    table = torch.zeros(vocab_size, dtype=torch.bool)
    table[[index for text, index in vocabulary.items() if text.startswith("Ċ")]] = True
    return table


@dataclass(frozen=True)
class Batch:
    """One batch of rows; tensors are ``[rows, CLEAN]``, those of canvases ``[rows, CANVAS]``."""

    layout: Layout
    clean: Tensor
    causal_target: Tensor
    causal_weight: Tensor
    middle: Tensor
    """True where the causal target belongs to a middle or is the end token behind it."""
    canvases: Canvases


def integers(low: int, high: int, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Uniform integers from ``low`` up to and with ``high``."""
    return torch.randint(low, high + 1, shape, device=device)


def hole_starts(stream: Stream, count: int, low: int, high: int) -> Tensor:
    """``[count]`` stream indices between ``low`` and ``high`` where holes start."""
    device = stream.tokens.device
    kind = torch.rand(count, device=device)
    cut = stream.cuts[integers(0, len(stream.cuts) - 1, (count,), device)]
    line = stream.line_starts[integers(0, len(stream.line_starts) - 1, (count,), device)]
    anywhere = integers(low, high, (count,), device)
    start = torch.where(kind < CUT_SHARE + LINE_SHARE, line, anywhere)
    return torch.where(kind < CUT_SHARE, cut, start).clamp(low, high)


def hole_lengths(ahead: Tensor, newline: Tensor, lines_only: Tensor, cap: int) -> Tensor:
    """``[count]`` hole lengths from 1 to ``cap``.

    ``ahead`` ``[count, >= cap + 1]`` holds the ids from the hole's start on. A hole ends before a
    newline token (the last one in reach, if its own is too far off) or, unless ``lines_only``
    ``[count]``, after a log-uniform number of tokens. It never contains the end of a file behind
    its first token.
    """
    count, device = len(ahead), ahead.device
    window = ahead[:, 1 : cap + 1]
    place = torch.arange(1, cap + 1, device=device)
    breaks = newline[window]
    kind = torch.rand(count, device=device)
    several = integers(2, 5, (count,), device)
    wanted = torch.where(kind < FIRST_LINE_SHARE, torch.ones_like(several), several)
    wanted = torch.minimum(wanted, breaks.sum(1))
    hit = breaks & (breaks.cumsum(1) == wanted[:, None])
    by_line = torch.where(hit, place, cap).amin(1)
    random = torch.exp(torch.rand(count, device=device) * math.log(cap + 1)).long().clamp(1, cap)
    use_line = (kind < FIRST_LINE_SHARE + MORE_LINES_SHARE) | lines_only
    file_end = torch.where(window == FILE_END, place, cap).amin(1)
    return torch.minimum(torch.where(use_line, by_line, random), file_end)


def suffix_lengths(after: Tensor, hidden: Tensor, limit: int) -> Tensor:
    """``[count]`` tokens of suffix that the prompt shows; 0 where ``hidden`` ``[count]``.

    ``after`` ``[count, >= limit]`` holds the ids behind the hole; nothing is shown behind the first
    end of a file.
    """
    place = torch.arange(1, limit + 1, device=after.device)
    file_end = torch.where(after[:, :limit] == FILE_END, place, limit).amin(1)
    drawn = integers(SUFFIX_TOKENS[0], limit, (len(after),), after.device)
    return torch.where(hidden, 0, torch.minimum(drawn, file_end))


def fill_in_batch(stream: Stream, rows: int, layout: Layout, hardest: bool = False) -> Batch:
    """Segments ``<fim_suffix> S <fim_prefix> P <fim_middle> M <eos>`` and their canvases.

    ``hardest`` canvases know the hole's length and nothing of its text, as validation needs them.
    """
    count, device = rows * layout.segments, stream.tokens.device
    length, prompt, width = layout.segment_length, layout.prompt_length, layout.canvas_width
    suffix_limit = min(SUFFIX_TOKENS[1], length // 3)
    reach = width + suffix_limit + 1
    start = hole_starts(stream, count, prompt, len(stream) - reach - 1)
    ahead = stream.read(start[:, None] + torch.arange(reach, device=device))
    hidden = torch.rand(count, device=device) < NO_SUFFIX_SHARE
    hole = hole_lengths(ahead, stream.newline, hidden, layout.reserve - 1)
    behind = hole[:, None] + torch.arange(suffix_limit, device=device)
    suffix = suffix_lengths(ahead.gather(1, behind), hidden, suffix_limit)
    clean, target, weight, middle = _segments(stream, start, hole, suffix, layout)
    number = count * layout.canvases
    task = torch.full((number,), Task.EXACT, device=device) if hardest else None
    levels = torch.ones(number, device=device) if hardest else None
    canvases = hole_canvases(ahead, hole, hidden, layout.canvases, width, EOS, task, levels)
    return Batch(
        layout,
        clean.view(rows, CLEAN),
        target.view(rows, CLEAN),
        weight.view(rows, CLEAN),
        middle.view(rows, CLEAN),
        canvases.reshape(rows, CANVAS),
    )


def _segments(
    stream: Stream, start: Tensor, hole: Tensor, suffix: Tensor, layout: Layout
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Clean tokens ``[count, segment_length]``, their causal targets, weights and middle flags."""
    prompt = layout.prompt_length
    place = torch.arange(layout.segment_length, device=start.device)[None]
    start, hole, suffix = start[:, None], hole[:, None], suffix[:, None]
    prefix_mark = torch.where(suffix > 0, suffix + 1, 0)
    in_suffix = place < prefix_mark
    in_middle = place >= prompt
    index = torch.where(in_suffix, start + hole + place - 1, start - (prompt - 1) + place)
    index = torch.where(in_middle, start + place - prompt, index).clamp(max=len(stream) - 1)
    clean = stream.read(index)
    clean = torch.where(in_suffix & (place == 0), FIM_SUFFIX, clean)
    clean = torch.where(place == prefix_mark, FIM_PREFIX, clean)
    clean = torch.where(place == prompt - 1, FIM_MIDDLE, clean)
    clean = torch.where(place == prompt + hole, EOS, clean)
    clean = torch.where(place > prompt + hole, PAD, clean)
    target = torch.roll(clean, -1, 1)
    learnt = place < prompt + hole
    learnt &= (place + 1 != prefix_mark) & (place + 1 != prompt - 1)  # nobody can foresee a marker
    middle = (place >= prompt - 1) & learnt
    weight = torch.where(middle, MIDDLE_WEIGHT, learnt.float())
    return clean, target, weight, middle


class PlainRows:
    """Running text without repetition within an epoch; half of the rows put a canvas border on a
    character cut, so that canvases start inside words as cursors do."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._order = torch.empty(0, dtype=torch.long)
        self._next = 0

    def _windows(self, count: int) -> Tensor:
        device = self.stream.tokens.device
        if self._next + count > len(self._order):
            phase = int(torch.randint(0, CLEAN, ()))
            windows = (len(self.stream) - phase - 1) // CLEAN
            self._order = (
                torch.randperm(max(windows, count), device=device) % windows * CLEAN + phase
            )
            self._next = 0
        self._next += count
        return self._order[self._next - count : self._next]

    def batch(self, rows: int, layout: Layout) -> Batch:
        """A batch of ``rows`` rows in a plain layout."""
        stream, device = self.stream, self.stream.tokens.device
        aligned = rows // 2
        border = integers(0, CANVAS // layout.canvas_width - 1, (aligned,), device)
        cut = stream.cuts[integers(0, len(stream.cuts) - 1, (aligned,), device)]
        place = CLEAN - CANVAS + border * layout.canvas_width
        at_cut = (cut - place).clamp(0, len(stream) - CLEAN - 1)
        start = torch.cat((self._windows(rows - aligned), at_cut))
        index = start[:, None] + torch.arange(CLEAN, device=device)
        clean = stream.read(index)
        weight = torch.ones(rows, CLEAN, device=device)
        weight[:, -1] = 0.0
        blocks = (-1, layout.canvas_width)
        text, is_cut = clean[:, -CANVAS:], stream.is_cut(index[:, -CANVAS:])
        canvases = plain_canvases(text.reshape(blocks), is_cut.reshape(blocks), stream.newline)
        nothing = torch.zeros_like(clean, dtype=torch.bool)
        target = torch.roll(clean, -1, 1)
        return Batch(layout, clean, target, weight, nothing, canvases.reshape(rows, CANVAS))
