"""Items of ours as clients send them back: the argument of an item's command says which it is."""

from __future__ import annotations

from typing import TypeVar

import msgspec

_Arguments = TypeVar("_Arguments", bound=msgspec.Struct)


class Command(msgspec.Struct, frozen=True):
    """The command of an item of ours."""

    arguments: list[msgspec.Raw] = []


class Item(msgspec.Struct, frozen=True):
    """An item that we sent, as far as it tells which."""

    command: Command | None = None

    def argument(self, kind: type[_Arguments]) -> _Arguments | None:
        """The command's argument; None when it carries none of this kind."""
        if self.command is None or not self.command.arguments:
            return None
        try:
            return msgspec.json.decode(self.command.arguments[0], type=kind)
        except msgspec.MsgspecError:
            return None
