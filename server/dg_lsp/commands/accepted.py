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


def signal(uri: str, version: int) -> types.Command:
    """The command that an item carries."""
    arguments = msgspec.to_builtins(Arguments(uri, version))
    return types.Command(title="Suggestion accepted", command=NAME, arguments=[arguments])


async def run(session: Session, arguments: Arguments) -> None:
    """Count it."""
    session.accepted += 1
