"""Text to ids, line by line and remembered, so that a keystroke encodes one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate

from dg_engine.tokenizer import Tokenizer

from dg_lsp.prompts.view import ANCHOR_LINES

START_STEP = 64
"""Tokens by which the start of a prefix moves: between two moves every prompt starts alike, and
the engine's prefix cache holds."""

_REMEMBERED_LINES = 16_384
_PROBE = (
    "import os\n\n\ndef f(a, b):\n    if a:\n\treturn  b + 12\n\n    x = 'é😀' \n  \n}\n\n\n)\n"
)


class LineTokens:
    r"""Encodes text in pieces that start at each `\n`.

    A tokenizer whose own split also starts a piece there gives the same ids as for the whole
    text; `exact` says whether this one does. Where it does not, nothing is split.
    """

    def __init__(
        self, tokenizer: Tokenizer, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._tokenizer = tokenizer
        self._clock = clock
        self._remembered = lru_cache(_REMEMBERED_LINES)(self._encode_now)
        self.spent_ms = 0.0
        """Milliseconds spent in the tokenizer so far."""
        split = [i for piece in pieces_of(_PROBE) for i in tokenizer.encode(piece)]
        self.exact = split == tokenizer.encode(_PROBE)

    def piece(self, piece: str) -> tuple[int, ...]:
        """Ids of one piece, remembered."""
        return self._remembered(piece)

    def encode(self, text: str) -> list[int]:
        """Ids of any text."""
        if not self.exact:
            return list(self._encode_now(text))
        return [i for piece in pieces_of(text) for i in self._remembered(piece)]

    def _encode_now(self, text: str) -> tuple[int, ...]:
        started = self._clock()
        ids = tuple(self._tokenizer.encode(text))
        self.spent_ms += (self._clock() - started) * 1e3
        return ids


def pieces_of(text: str) -> list[str]:
    r"""`text` cut before each `\n`; joined again they are `text`."""
    first, *rest = text.split("\n")
    return [first, *("\n" + line for line in rest)]


def window_start(pieces: Sequence[str], count: Callable[[str], int], room: int) -> int:
    """Index of the first piece of a prefix of at most `room` tokens, `len(pieces)` if none fits.

    Piece 0 stands on a line number that divides by ANCHOR_LINES. The start moves in jumps of
    START_STEP tokens or more and depends on the text alone: tokens are counted from such a line,
    not from the cursor, so that typing at the end leaves the start where it is.
    """
    counts: list[int] = []
    total = 0
    for index in range(len(pieces) - 1, -1, -1):
        counts.append(count(pieces[index]))
        total += counts[-1]
        if total >= room + START_STEP and index % ANCHOR_LINES == 0:
            break
    drop = rounded_up(total - room)
    before = accumulate(reversed(counts), initial=0)
    return len(pieces) - len(counts) + next(i for i, tokens in enumerate(before) if tokens >= drop)


def rounded_up(tokens: int) -> int:
    """`tokens` to drop, as a multiple of START_STEP."""
    return -(-max(tokens, 0) // START_STEP) * START_STEP
