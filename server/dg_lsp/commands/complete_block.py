"""dg.completeBlock: write the block at the cursor, by one versioned edit."""

from __future__ import annotations

import msgspec
from dg_engine.engine import EngineError

from dg_lsp.commands.result import Result, refused, replace
from dg_lsp.positions import Position
from dg_lsp.prompts.view import view_at
from dg_lsp.session import Session
from dg_lsp.uris import shown_path

NAME = "dg.completeBlock"


class Arguments(msgspec.Struct, frozen=True):
    """The cursor."""

    uri: str
    position: Position
    version: int | None = None


async def run(session: Session, arguments: Arguments) -> object:
    """Complete several lines; the answer says whether they were inserted and why not."""
    document = session.documents.get(arguments.uri)
    if document is None:
        return refused("The document is not open.")
    if arguments.version is not None and arguments.version != document.version:
        return refused("The document changed since the cursor stood there; ask again.")
    line, column = document.place(arguments.position, session.encoding)
    with session.flights.begin():
        try:
            completer = await session.completer(session.configuration.edit_deadline_ms)
        except EngineError as error:
            return refused(str(error))
        completion = await completer.complete_at(
            view_at(
                document.lines,
                line,
                column,
                path=shown_path(document.uri, session.editor.roots),
                language=document.language,
            ),
            multi_line=True,
            deadline_ms=session.configuration.edit_deadline_ms,
        )
        cursor = document.position(line, column, session.encoding)
        reason = completion.reason or await replace(
            session, document, cursor, cursor, completion.insert, "Complete the block"
        )
    return msgspec.to_builtins(
        Result(not reason, reason, completion.steps, completion.forwards, completion.ms)
    )
