"""textDocument/didShowInlineEdit: the editor drew a proposed edit (as copilot-lsp tells it)."""

from __future__ import annotations

import msgspec

from dg_lsp.commands.next_edit_accepted import Arguments
from dg_lsp.session import Session

NAME = "textDocument/didShowInlineEdit"


class Command(msgspec.Struct, frozen=True):
    """The command of an edit of ours."""

    arguments: list[msgspec.Raw] = []


class Item(msgspec.Struct, frozen=True):
    """An edit that we sent, as far as it tells which."""

    command: Command | None = None

    @property
    def edit(self) -> int:
        """The number of the edit, 0 when it carries none."""
        if self.command is None or not self.command.arguments:
            return 0
        try:
            return msgspec.json.decode(self.command.arguments[0], type=Arguments).edit
        except msgspec.MsgspecError:
            return 0


class Params(msgspec.Struct, frozen=True):
    """What clients send."""

    item: Item


def handle(session: Session, params: Params) -> None:
    """From now on the edit counts as seen."""
    if params.item.edit:
        session.next_edits.drawn(params.item.edit)
