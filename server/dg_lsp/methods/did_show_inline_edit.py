"""textDocument/didShowInlineEdit: the editor drew a proposed edit (as copilot-lsp tells it)."""

from __future__ import annotations

import msgspec

from dg_lsp.commands.next_edit_accepted import Arguments
from dg_lsp.methods.sent_back import Item
from dg_lsp.session import Session

NAME = "textDocument/didShowInlineEdit"


class Params(msgspec.Struct, frozen=True):
    """What clients send."""

    item: Item


def handle(session: Session, params: Params) -> None:
    """From now on the edit counts as seen."""
    arguments = params.item.argument(Arguments)
    if arguments is not None and arguments.edit:
        session.next_edits.drawn(arguments.edit)
