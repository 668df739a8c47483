"""textDocument/didPartiallyAcceptCompletion: the user took a part of a suggestion.

The document's change says which part; the rest is offered as after any typing that agrees.
"""

from __future__ import annotations

import msgspec

from dg_lsp.methods.did_show_completion import drawn
from dg_lsp.methods.sent_back import Item
from dg_lsp.session import Session

NAME = "textDocument/didPartiallyAcceptCompletion"


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """What clients send."""

    item: Item
    accepted_length: int = 0
    """In UTF-16 units, from the start of the item."""


def handle(session: Session, params: Params) -> None:
    """Count it as a suggestion that was of use."""
    if params.accepted_length > 0:
        drawn(session, params.item)
        session.desk.habits.ended(taken=True)
