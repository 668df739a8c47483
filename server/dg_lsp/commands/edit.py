"""dg.edit: change the selected lines as told, by one versioned edit."""

from __future__ import annotations

import msgspec
from dg_engine.engine import EngineError

from dg_lsp.commands.result import Result, refused, replace
from dg_lsp.lines import body_of
from dg_lsp.positions import Range
from dg_lsp.session import Session
from dg_lsp.uris import shown_path

NAME = "dg.edit"


class Arguments(msgspec.Struct, frozen=True):
    """The lines that `range` touches, and what to change."""

    uri: str
    range: Range
    instruction: str = ""
    version: int | None = None
    """The version that the range was taken from; another one is refused."""


async def run(session: Session, arguments: Arguments) -> object:
    """Edit; the answer says whether the edit was applied and why not."""
    document = session.documents.get(arguments.uri)
    if document is None:
        return refused("The document is not open.")
    if arguments.version is not None and arguments.version != document.version:
        return refused("The document changed since the lines were chosen; choose them again.")
    if not arguments.instruction.strip():
        return refused("The instruction is empty; say what to change.")
    places = (arguments.range.start, arguments.range.end)
    (first, _), (last, end) = sorted(document.place(p, session.encoding) for p in places)
    if end == 0 and last > first:
        last -= 1  # a selection of whole lines ends before the first character of the next
    with session.flights.begin():
        try:
            completer = await session.completer(session.configuration.edit_deadline_ms)
        except EngineError as error:
            return refused(str(error))
        edit = await completer.edit_lines(
            document.lines,
            first + 1,
            last + 1,
            arguments.instruction,
            path=shown_path(document.uri, session.editor.roots),
            language=document.language,
            deadline_ms=session.configuration.edit_deadline_ms,
        )
        reason = edit.reason or await replace(
            session,
            document,
            document.position(first, 0, session.encoding),
            document.position(last, len(body_of(document.lines[last])), session.encoding),
            edit.new_text,
            "Edit with instruction",
        )
    return msgspec.to_builtins(Result(not reason, reason, edit.steps, edit.forwards, edit.ms))
