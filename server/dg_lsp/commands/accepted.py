"""dg.accepted: runs when the user takes a suggestion; clients have no better signal."""

from __future__ import annotations

import msgspec
from lsprotocol import types

from dg_lsp.session import Session

NAME = "dg.accepted"


class Arguments(msgspec.Struct, frozen=True):
    """Which suggestion was taken."""

    uri: str
    version: int
    offer: int = 0
    """Its number in this session, 0 when the client does not say."""


def signal(uri: str, version: int, offer: int) -> types.Command:
    """The command that an item carries."""
    arguments = msgspec.to_builtins(Arguments(uri, version, offer))
    return types.Command(title="Suggestion accepted", command=NAME, arguments=[arguments])


async def run(session: Session, arguments: Arguments) -> None:
    """Count it."""
    session.accepted += 1
    session.desk.shelf.taken(arguments.offer)
