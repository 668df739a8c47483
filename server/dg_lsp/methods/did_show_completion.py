"""textDocument/didShowCompletion: the editor drew a suggestion (a notification of its clients)."""

from __future__ import annotations

import msgspec

from dg_lsp.commands.accepted import Arguments
from dg_lsp.methods.sent_back import Item
from dg_lsp.session import Session

NAME = "textDocument/didShowCompletion"


class Params(msgspec.Struct, frozen=True):
    """What clients send."""

    item: Item


def handle(session: Session, params: Params) -> None:
    """From now on the suggestion counts as seen."""
    drawn(session, params.item)


def drawn(session: Session, item: Item) -> None:
    """Note that the editor drew what an item is of."""
    arguments = item.argument(Arguments)
    session.desk.shelf.drawn(arguments.offer if arguments is not None else 0)
