"""Drafts: what a canvas says after each denoise step, in pieces of text."""

from __future__ import annotations

from typing import Literal, cast

import msgspec
from dg_engine.job import CanvasJob, Frame, Role
from dg_engine.tokenizer import Tokenizer

from dg_lsp.jobs import kinds_in
from dg_lsp.prompts.tokens import LONGEST_CHARACTER, is_cut

PieceKind = Literal["hole", "seed", "pin"]


class Piece(msgspec.Struct, frozen=True):
    """One token of a draft as text; a character spread over several tokens is one piece."""

    text: str
    kind: PieceKind
    entropy: float
    """Nats; 0 at pins."""


class Draft(msgspec.Struct, frozen=True):
    """The best row of a frame."""

    step: int
    pieces: list[Piece]
    frame: Frame


def draft_of(job: CanvasJob, frame: Frame, tokenizer: Tokenizer) -> Draft:
    """The best row of `frame` as pieces of text."""
    if not frame.ids:
        return Draft(frame.step, [], frame)
    row = frame.ids[0]
    kinds = kinds_in(job, width_of(frame, 0), len(row))
    pieces: list[Piece] = []
    held: list[int] = []
    for position, (token, role) in enumerate(zip(row, kinds, strict=True)):
        held.append(token)
        text = tokenizer.decode(held)
        last = position + 1 == len(row) or kinds[position + 1] != role
        if is_cut(text) and len(held) < LONGEST_CHARACTER and not last:
            continue
        entropy = frame.entropy[position] if position < len(frame.entropy) else 0.0
        pieces.append(Piece(text, cast("PieceKind", Role(role).name.lower()), entropy))
        held = []
    return Draft(frame.step, pieces, frame)


def width_of(frame: Frame, row: int) -> int:
    """How many positions of a row are not pins; the whole row when the engine does not say."""
    return frame.widths[row] if row < len(frame.widths) else len(frame.ids[row])
