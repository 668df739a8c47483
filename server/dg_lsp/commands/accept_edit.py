"""dg.acceptEdit: apply an edit that was shown, as one undo step."""

from __future__ import annotations

import asyncio

import msgspec

from dg_lsp.commands.edit import LABEL
from dg_lsp.commands.result import Replacement, Result, refused, replace
from dg_lsp.session import Session
from dg_lsp.uris import normalised

NAME = "dg.acceptEdit"
OVER = "There is no such edit any more; it was applied, discarded or dropped."


class Arguments(msgspec.Struct, frozen=True):
    """The edit, by the id of its notifications."""

    id: str


async def run(session: Session, arguments: Arguments) -> object:
    """Apply it to the newest version; where that fails the edit waits on, if its lines stand."""
    pending = session.previews.get(arguments.id)
    document = session.documents.get(pending.preview.uri) if pending else None
    if pending is None or document is None or not pending.region.stands_in(document.lines):
        return refused(OVER)
    if pending.applying:
        return refused("The edit is being applied already.")
    if not pending.is_ready:
        return refused("The edit is not finished; wait for it, or discard it.")
    region = pending.region
    new = Replacement(region.first, 0, *region.end, pending.preview.text)
    reason = "The request was cancelled."
    pending.applying = True
    with session.flights.begin(document=normalised(document.uri)) as flight:
        try:
            reason = await replace(session, document, [new], LABEL)
        except asyncio.CancelledError:
            if not flight.ended_because:
                raise
            reason = flight.ended_because
        finally:
            session.previews.settle(pending, reason)
    waits = session.previews.get(arguments.id) is not None
    return msgspec.to_builtins(Result(not reason, reason, id=arguments.id, pending=waits))
