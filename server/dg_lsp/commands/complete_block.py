"""dg.completeBlock: write the block at the cursor, by one versioned edit."""

from __future__ import annotations

import msgspec

from dg_lsp.commands.result import Replacement, Result, opened, refused, replace, worked_on
from dg_lsp.completion import Completer
from dg_lsp.positions import Position
from dg_lsp.prompts.view import view_at
from dg_lsp.session import Session

NAME = "dg.completeBlock"
LABEL = "Complete the block"


class Arguments(msgspec.Struct, frozen=True):
    """The cursor."""

    uri: str
    position: Position
    version: int | None = None


async def run(session: Session, arguments: Arguments) -> object:
    """Complete several lines; the answer says whether they were inserted and why not."""
    stale = "The document changed since the cursor stood there; ask again."
    document = opened(session, arguments.uri, arguments.version, stale)
    if isinstance(document, str):
        return refused(document)
    line, column = document.place(arguments.position, session.encoding)
    whole, first = session.notebooks.around(document).whole(document.lines)

    async def work(completer: Completer) -> Result:
        completion = await completer.complete_at(
            view_at(
                whole,
                first + line,
                column,
                path=session.shown_path(document.uri),
                language=document.language,
                context=session.context.at(document, line),
            ),
            multi_line=True,
            deadline_ms=session.configuration_of(document.uri).edit_deadline_ms,
        )
        new = Replacement(line, column, line, column, completion.insert)
        reason = completion.reason or await replace(session, document, [new], LABEL)
        return Result(not reason, reason, completion.steps, completion.forwards, completion.ms)

    return msgspec.to_builtins(await worked_on(session, document, work))
