"""dg.nextEditAccepted: runs when the user takes a proposed edit."""

from __future__ import annotations

import msgspec
from lsprotocol import types

from dg_lsp.session import Session

NAME = "dg.nextEditAccepted"


class Arguments(msgspec.Struct, frozen=True):
    """Which edit was taken."""

    uri: str
    version: int
    edit: int = 0
    """Its number in this session, 0 when the client does not say."""


def signal(uri: str, version: int, edit: int) -> types.Command:
    """The command that an edit carries."""
    arguments = msgspec.to_builtins(Arguments(uri, version, edit))
    return types.Command(title="Next edit accepted", command=NAME, arguments=[arguments])


async def run(session: Session, arguments: Arguments) -> None:
    """Count it."""
    session.accepted += 1
    session.next_edits.taken(arguments.edit)
