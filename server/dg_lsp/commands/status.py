"""dg.status: what the server holds and does, for people and for tests."""

from __future__ import annotations

import msgspec

from dg_lsp.session import Session

NAME = "dg.status"


class Arguments(msgspec.Struct, frozen=True):
    """None."""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The answer."""

    busy: bool
    kind: str
    message: str
    model: str
    documents: int
    in_flight: int
    accepted: int
    """Suggestions that the user took in this session."""


async def run(session: Session, arguments: Arguments) -> object:
    """Report; this request does not count as work in flight."""
    status = session.status.status
    return msgspec.to_builtins(
        Report(
            busy=status.busy,
            kind=status.kind,
            message=status.message,
            model=session.status.model.state,
            documents=len(session.documents),
            in_flight=len(session.flights),
            accepted=session.accepted,
        )
    )
