"""dg.writeDocstring: write the docstring that a Python definition lacks, by one versioned edit."""

from __future__ import annotations

import msgspec

from dg_lsp.commands.result import Replacement, Result, opened, refused, replace, worked_on
from dg_lsp.completion import Completer
from dg_lsp.docstrings import gap_at, view_of, written
from dg_lsp.positions import Position
from dg_lsp.session import Session

NAME = "dg.writeDocstring"
LABEL = "Write the docstring"


class Arguments(msgspec.Struct, frozen=True):
    """A place in the signature."""

    uri: str
    position: Position
    version: int | None = None


async def run(session: Session, arguments: Arguments) -> object:
    """Write it; the answer says whether it was inserted and why not."""
    stale = "The document changed since the cursor stood there; ask again."
    document = opened(session, arguments.uri, arguments.version, stale)
    if isinstance(document, str):
        return refused(document)
    line, _ = document.place(arguments.position, session.encoding)
    gap = gap_at(document.lines, line, document.language)
    if gap is None:
        return refused("No Python definition without a docstring has its signature here.")
    whole, first = session.notebooks.around(document).whole(document.lines)
    there = msgspec.structs.replace(gap, line=first + gap.line)

    async def work(completer: Completer) -> Result:
        completion = await completer.complete_at(
            view_of(whole, there, session.shown_path(document.uri)),
            multi_line=True,
            deadline_ms=session.configuration_of(document.uri).edit_deadline_ms,
        )
        text = written(document.lines, gap, completion.insert)
        new = Replacement(gap.line, gap.column, gap.line, gap.column, text)
        reason = "" if text else completion.reason or "The model proposed no text."
        reason = reason or await replace(session, document, [new], LABEL)
        return Result(not reason, reason, completion.steps, completion.forwards, completion.ms)

    return msgspec.to_builtins(await worked_on(session, document, work))
