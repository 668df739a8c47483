"""The text around a cursor as a model may see it: secrets masked, every column where it was."""

from __future__ import annotations

import msgspec

from dg_lsp.privacy.secrets import masked
from dg_lsp.prompts.view import CursorView


def masked_view(view: CursorView) -> CursorView:
    """`view` with secrets masked on both sides; the same object where there are none."""
    return masked_around(view, "")[0]


def masked_around(view: CursorView, region: str) -> tuple[CursorView, str]:
    """A view and the text between its sides, masked as the one text that they are.

    A cursor may stand inside a secret, and lines may be the middle of a private key.
    """
    text = view.before + region + view.after
    shown = masked(text)
    if shown == text:
        return view, region
    start, end = len(view.before), len(view.before) + len(region)
    return (
        msgspec.structs.replace(view, before=shown[:start], after=shown[end:]),
        shown[start:end],
    )
