"""dg.discardEdit: drop an edit that was shown, or stop the work on it."""

from __future__ import annotations

import msgspec

from dg_lsp.commands.accept_edit import OVER
from dg_lsp.commands.result import Result, refused
from dg_lsp.previews import DISCARDED
from dg_lsp.session import Session

NAME = "dg.discardEdit"


class Arguments(msgspec.Struct, frozen=True):
    """The edit, by the id of its notifications."""

    id: str


async def run(session: Session, arguments: Arguments) -> object:
    """Drop it; the document was never touched, so there is nothing to undo."""
    pending = session.previews.get(arguments.id)
    if pending is None:
        return refused(OVER)
    if pending.applying:
        return refused("The edit is being applied already; undo it in the editor.")
    session.previews.end(pending, DISCARDED)
    return msgspec.to_builtins(Result(applied=False, id=arguments.id))
