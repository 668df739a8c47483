"""dg.fillHoles: put code in place of `___` marks, by one versioned edit."""

from __future__ import annotations

import msgspec

from dg_lsp.commands.result import Replacement, Result, opened, refused, replace, worked_on
from dg_lsp.completion import Completer, FillRequest
from dg_lsp.documents import Document
from dg_lsp.marks import Mark, marks_in
from dg_lsp.positions import Range
from dg_lsp.session import Session

NAME = "dg.fillHoles"
LABEL = "Fill the holes"
MOST_MARKS = 64
"""More marks than anybody waits for."""


class Arguments(msgspec.Struct, frozen=True):
    """The marks in a range, or in the whole document without one."""

    uri: str
    version: int | None = None
    range: Range | None = None


async def run(session: Session, arguments: Arguments) -> object:
    """Fill them; the answer says whether anything was filled and why not."""
    stale = "The document changed since the holes were chosen; choose them again."
    document = opened(session, arguments.uri, arguments.version, stale)
    if isinstance(document, str):
        return refused(document)
    marks = marks_of(session, document, arguments.range)
    if not marks:
        return refused("There is no hole here; write ___ where code is missing.")
    if len(marks) > MOST_MARKS:
        return refused(f"There are {len(marks)} holes; choose lines with at most {MOST_MARKS}.")
    whole, first = session.notebooks.around(document).whole(document.lines)
    asked = FillRequest(
        lines=whole,
        marks=[Mark(first + mark.line, mark.start) for mark in marks],
        path=session.shown_path(document.uri),
        language=document.language,
    )

    async def work(completer: Completer) -> Result:
        limit = session.configuration_of(document.uri).edit_deadline_ms
        found = await completer.fill_marks(asked, deadline_ms=limit)
        new = [
            Replacement(mark.line, mark.start, mark.line, mark.end, text)
            for mark, text in zip(marks, found.texts, strict=True)
            if text
        ]
        reason = found.reason or await replace(session, document, new, LABEL)
        return Result(not reason, reason, found.steps, found.forwards, found.ms)

    return msgspec.to_builtins(await worked_on(session, document, work))


def marks_of(session: Session, document: Document, chosen: Range | None) -> list[Mark]:
    """The marks that a range touches, or all of them without one."""
    if chosen is None:
        return marks_in(document.lines)
    places = (chosen.start, chosen.end)
    start, end = sorted(document.place(place, session.encoding) for place in places)
    found = marks_in(document.lines, start[0], end[0])
    return [m for m in found if (m.line, m.end) >= start and (m.line, m.start) <= end]
