"""What a step found for one canvas, as the flat list of integers that travels as token ids.

vLLM's outputs carry token ids and little else from the worker to every kind of client, so a draft
rides there. Lists of several drafts may be joined: each says how long it is.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator

import msgspec

HEADER = 7


class Code(enum.IntEnum):
    """Whether the request goes on behind this draft."""

    GOES_ON = 0
    CONVERGED = 1
    """The last draft; it settled (GREEDY: an end token came)."""
    MAX_STEPS = 2
    """The last draft; its steps are spent."""
    BLOCK_CONVERGED = 3
    """The last draft of a block that is committed now."""
    BLOCK_MAX_STEPS = 4
    LOST = 5
    """A GREEDY request was preempted and has to be asked again."""
    REFUSED = 6
    """The request cannot be run."""

    @property
    def ends_block(self) -> bool:
        """Whether a commit and another block follow."""
        return self in (Code.BLOCK_CONVERGED, Code.BLOCK_MAX_STEPS)

    @property
    def final(self) -> bool:
        """Whether the request ends here."""
        return self is not Code.GOES_ON and not self.ends_block


class Draft(msgspec.Struct, frozen=True):
    """One step of one request."""

    step: int
    code: Code
    settled: int
    """Free positions that are as in the draft before."""
    forwards: int
    """Forward passes the request took part in so far."""
    cached_tokens: int
    ids: list[int]
    """The argmax canvas with its pins, or the token of a GREEDY step."""
    entropy: list[float]
    """Nats per position, 0 at pins."""
    scores: list[float]
    """Log-probability of each id; for SCORE that of the id behind."""
    block: int = 0
    """Blocks, or tokens of a GREEDY request, in front of it. One that was preempted may send the
    same again, and the later counts."""


def pack_draft(draft: Draft) -> list[int]:
    """A draft as integers from 0 to 2**32 - 1: header, ids, then both float lists as bits."""
    header = [
        len(draft.ids), draft.step, int(draft.code), draft.settled, draft.forwards,
        draft.cached_tokens, draft.block,
    ]  # fmt: skip
    return [*header, *draft.ids, *_bits(draft.entropy), *_bits(draft.scores)]


def unpack_drafts(values: list[int]) -> Iterator[Draft]:
    """The drafts of a joined list; raises ValueError when it is cut short."""
    at = 0
    while at < len(values):
        width = values[at]
        end = at + HEADER + 3 * width
        if width < 1 or end > len(values):
            raise ValueError("The engine sent a draft that is cut short.")
        step, code, settled, forwards, cached, block = values[at + 1 : at + HEADER]
        body = values[at + HEADER : end]
        yield Draft(
            step, Code(code), settled, forwards, cached,
            body[:width], _floats(body[width : 2 * width]), _floats(body[2 * width :]),
            block,
        )  # fmt: skip
        at = end


def _bits(values: list[float]) -> tuple[int, ...]:
    return struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))


def _floats(bits: list[int]) -> list[float]:
    return list(struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *bits)))
