"""Text to ids, line by line and remembered, so that a keystroke encodes one line."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from typing import cast

from dg_engine.tokenizer import Tokenizer

from dg_lsp.prompts.view import ANCHOR_LINES
from dg_lsp.remembered import Remembered

START_STEP = 64
"""Tokens by which the start of a prefix moves: between two moves every prompt starts alike, and
the engine's prefix cache holds."""

REMEMBERED_LINES = 65_536
"""Lines whose ids are kept, of all documents: twice those of a file of a megabyte, for half may be
forgotten (`Remembered`)."""
LONGEST_CHARACTER = 4
"""Bytes of UTF-8, so tokens of a byte-level vocabulary, that one character may be spread over."""
_CUT_CHARACTER = "\ufffd"
_REMEMBERED_TEXTS = 16
_PROBE = (
    "import os\n\n\ndef f(a, b):\n    if a:\n\treturn  b + 12\n\n    x = 'é😀' \n  \n}\n\n\n)\n"
)

Ids = Sequence[int]


class Pieces:
    """The ids of the pieces of a text, looked up from its end as far as they are asked for."""

    def __init__(self, texts: Sequence[str], ids_of: Callable[[Sequence[str]], list[Ids]]) -> None:
        self.texts = texts
        self._ids_of = ids_of
        self._ids: list[Ids] = []
        """Of the last pieces, the last one first."""
        self._behind = [0]
        """How many tokens the last pieces have together, by their number."""
        self._from = -1
        self._ids_from: list[int] = []

    def __len__(self) -> int:
        return len(self.texts)

    def _look_up(self, index: int) -> None:
        """Know the pieces from one on."""
        while (first := len(self) - len(self._ids)) > index:
            found = self._ids_of(self.texts[max(first - ANCHOR_LINES, 0) : first])
            found.reverse()
            self._ids += found
            counts = accumulate(map(len, found), initial=self._behind.pop())
            self._behind += counts

    def behind(self, index: int) -> int:
        """How many tokens the pieces from one on have together."""
        self._look_up(index)
        return self._behind[len(self) - index]

    def up_to(self, most: int) -> int:
        """How many tokens all have together, or more than `most` without counting on."""
        while self._behind[-1] <= most and len(self._ids) < len(self):
            self._look_up(len(self) - len(self._ids) - 1)
        return self._behind[-1]

    def first_within(self, room: int, least: int) -> int:
        """The first piece, `least` or behind it, from which on all together have at most `room`
        tokens."""
        self._look_up(least)
        return len(self) + 1 - bisect_right(self._behind, room, 0, len(self) - least + 1)

    def ids_from(self, start: int) -> list[int]:
        """The ids of all pieces from one on; not to be changed."""
        if start != self._from:
            self._look_up(start)
            pieces = reversed(self._ids[: len(self) - start])
            self._from, self._ids_from = start, list(chain.from_iterable(pieces))
        return self._ids_from


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
        # Four bytes for each id, where a tuple of ids takes ten times as much.
        self._remembered: Remembered[array[int]] = Remembered(REMEMBERED_LINES)
        self._above = lru_cache(_REMEMBERED_TEXTS)(self._above_now)
        self.spent_ms = 0.0
        """Milliseconds spent in the tokenizer so far."""
        split = [i for piece in pieces_of(_PROBE) for i in tokenizer.encode(piece)]
        self.exact = split == tokenizer.encode(_PROBE)

    def piece(self, piece: str) -> Ids:
        """Ids of one piece, remembered."""
        found = self._remembered.get(piece)
        if found is None:
            found = self._remembered.put(piece, array("I", self._encode_now(piece)))
        return found

    def pieces(self, pieces: Sequence[str]) -> list[Ids]:
        """As `piece`, of each."""
        found = self._remembered.get_all(pieces)
        if None not in found:
            return cast("list[Ids]", found)
        return [
            self.piece(piece) if ids is None else ids
            for piece, ids in zip(pieces, found, strict=True)
        ]

    def encode(self, text: str) -> list[int]:
        """Ids of any text."""
        if not self.exact:
            return self._encode_now(text)
        return list(chain.from_iterable(self.pieces(pieces_of(text))))

    def above(self, text: str) -> tuple[Pieces, str]:
        """The pieces of a text but for its last line, and that line's piece.

        While somebody types on a line, what is above it is looked up as one.
        """
        at = text.rfind("\n")
        return (self._above(text[:at]), text[at:]) if at >= 0 else (Pieces((), self.pieces), text)

    def _above_now(self, text: str) -> Pieces:
        return Pieces(pieces_of(text), self.pieces)

    def _encode_now(self, text: str) -> list[int]:
        started = self._clock()
        ids = self._tokenizer.encode(text)
        self.spent_ms += (self._clock() - started) * 1e3
        return ids


def pieces_of(text: str) -> list[str]:
    r"""`text` cut before each `\n`; joined again they are `text`."""
    first, *rest = text.split("\n")
    return [first, *("\n" + line for line in rest)]


def is_cut(text: str) -> bool:
    """Whether the ids that were decoded to `text` end inside of a character."""
    return text.endswith(_CUT_CHARACTER)


def window_start(above: Pieces, last: int, room: int) -> int:
    """Index of the first piece of a prefix of at most `room` tokens.

    It is one of `above`, or the line behind them, which has `last` tokens, or behind that if not
    even it fits. Piece 0 stands on a line number that divides by ANCHOR_LINES. The start moves in
    jumps of START_STEP tokens or more and depends on the text alone: tokens are counted from such
    a line, not from the cursor, so that typing at the end leaves the start where it is.
    """
    enough = room + START_STEP - last
    first = len(above) - len(above) % ANCHOR_LINES
    while first > 0 and above.behind(first) < enough:
        first -= ANCHOR_LINES
    kept = last + above.behind(first) - rounded_up(last + above.behind(first) - room)
    if kept < last:
        return len(above) + 1
    return above.first_within(kept - last, first)


def rounded_up(tokens: int) -> int:
    """`tokens` to drop, as a multiple of START_STEP."""
    return -(-max(tokens, 0) // START_STEP) * START_STEP
