"""textDocument/didShowCompletion: the editor drew a suggestion (a notification of its clients)."""

from __future__ import annotations

import msgspec

from dg_lsp.commands.accepted import Arguments
from dg_lsp.session import Session

NAME = "textDocument/didShowCompletion"


class Command(msgspec.Struct, frozen=True):
    """The command of an item of ours."""

    arguments: list[msgspec.Raw] = []


class Item(msgspec.Struct, frozen=True):
    """An item that we sent, as far as it tells which."""

    command: Command | None = None

    @property
    def offer(self) -> int:
        """The number of its offer, 0 when it carries none."""
        if self.command is None or not self.command.arguments:
            return 0
        try:
            return msgspec.json.decode(self.command.arguments[0], type=Arguments).offer
        except msgspec.MsgspecError:
            return 0


class Params(msgspec.Struct, frozen=True):
    """What clients send."""

    item: Item


def handle(session: Session, params: Params) -> None:
    """From now on the suggestion counts as seen."""
    session.desk.shelf.drawn(params.item.offer)
