"""dg.accepted: runs when the user takes a suggestion; clients have no better signal."""

from __future__ import annotations

import msgspec

from dg_lsp.session import Session

NAME = "dg.accepted"


class Arguments(msgspec.Struct, frozen=True):
    """Which suggestion was taken."""

    uri: str
    version: int
    offer: int = 0
    """Its number in this session, 0 when the client does not say."""


class Command(msgspec.Struct, frozen=True):
    """Command, as it is written."""

    title: str
    command: str
    arguments: list[Arguments]


def signal(uri: str, version: int, offer: int) -> Command:
    """The command that an item carries."""
    return Command("Suggestion accepted", NAME, [Arguments(uri, version, offer)])


async def run(session: Session, arguments: Arguments) -> None:
    """Count it."""
    session.accepted += 1
    session.desk.shelf.taken(arguments.offer)
