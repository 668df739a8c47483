"""Looking through a document before anybody asks: its lines masked, encoded and remembered.

A first key at a place of a large file would otherwise wait for a thousand tokens. What is kept is
what a request there would keep: ids of lines without their secrets, in memory alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from dg_lsp.lines import Lines, body_of
from dg_lsp.privacy.secrets import masked, may_hold_key
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.prompts.tokens import REMEMBERED_LINES

BLOCK_LINES = 16
MOST_LINES = REMEMBERED_LINES // 2
"""Of one document, those around a line of it."""
NEW_LINES = 8
"""A change that brings as many is looked through, too."""


def looked_through(lines: Lines, around: int, prompt_format: PromptFormat) -> Iterator[None]:
    """Have the lines remembered, those nearest to a line first, a block for each item.

    Nothing of a text with a private key: which lines are of it shows only in the whole.
    """
    for chunk in lines.chunks:
        if may_hold_key("".join(chunk)):
            return
        yield
    blocks = _blocks(lines.count, min(around, lines.count - 1))
    for first in islice(blocks, MOST_LINES // BLOCK_LINES):
        bodies = map(body_of, lines.between(first, first + BLOCK_LINES))
        # A line is encoded with the break before it; the first has none.
        prompt_format.encode(masked(("\n" if first else "") + "\n".join(bodies)))
        yield


def _blocks(count: int, around: int) -> Iterator[int]:
    """First lines of blocks, above and below a line in turn."""
    here = around - around % BLOCK_LINES
    yield here
    for away in range(BLOCK_LINES, count, BLOCK_LINES):
        if here + away < count:
            yield here + away
        if here - away >= 0:
            yield here - away
