"""dg.edit: change the selected lines as told, at once or after a preview."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec
from dg_engine.job import DoneKind

from dg_lsp.commands.result import Replacement, Result, opened, refused, replace, worked_on
from dg_lsp.completion import Completer, Edit, EditRequest
from dg_lsp.documents import Document
from dg_lsp.flights import Flight
from dg_lsp.lines import body_of
from dg_lsp.positions import Range
from dg_lsp.previews import Pending
from dg_lsp.results import OnEditDraft
from dg_lsp.session import Session

NAME = "dg.edit"
LABEL = "Edit with instruction"
BREAKS = "The edit would have broken the syntax of the lines, so nothing was applied."


class Arguments(msgspec.Struct, frozen=True):
    """The lines that `range` touches, and what to change."""

    uri: str
    range: Range
    instruction: str = ""
    version: int | None = None
    """The version that the range was taken from; another one is refused."""
    preview: bool | None = False
    """Whether drafts are shown by `dg/editPreview`, and nothing applied before dg.acceptEdit.

    Emacs' lsp-mode gives back null for the false that it got.
    """


class Asked(NamedTuple):
    """An edit of the version that the client had when it asked."""

    document: Document
    first: int
    """First line in the document."""
    last: int
    """Last line, included."""
    request: EditRequest
    pending: Pending | None
    """What follows the lines from now on, for an edit that is shown first."""


def on_receipt(session: Session, arguments: Arguments) -> Asked | str:
    """The edit that is asked for, or why it is none; what is typed from now on comes behind it."""
    stale = "The document changed since the lines were chosen; choose them again."
    document = opened(session, arguments.uri, arguments.version, stale)
    if isinstance(document, str):
        return document
    if not arguments.instruction.strip():
        return "The instruction is empty; say what to change."
    first, last = _lines_of(session, document, arguments.range)
    pending = None
    if arguments.preview:
        chosen = document.lines.between(first, last + 1)
        old = "".join(chosen[:-1]) + body_of(chosen[-1])
        pending = session.previews.prepare(document, first, last, old)
    whole, before = session.notebooks.around(document).whole(document.lines)
    request = EditRequest(
        lines=whole,
        first=before + first,
        last=before + last,
        instruction=arguments.instruction,
        path=session.shown_path(document.uri),
        language=document.language,
    )
    return Asked(document, first, last, request, pending)


async def run(session: Session, asked: Asked | str) -> object:
    """Edit; the answer says whether the edit was applied and why not."""
    if isinstance(asked, str):
        return refused(asked)
    if asked.pending is None:
        return msgspec.to_builtins(await _applied(session, asked))
    return msgspec.to_builtins(await _previewed(session, asked, asked.pending))


async def _applied(session: Session, asked: Asked) -> Result:
    document = asked.document

    async def work(completer: Completer) -> Result:
        edit = await _edited(session, completer, asked)
        end = len(body_of(document.lines[asked.last]))
        new = Replacement(asked.first, 0, asked.last, end, edit.new_text)
        # Who is shown the edit first decides on it.
        reason = edit.reason or (BREAKS if edit.breaks_syntax else "")
        reason = reason or await replace(session, document, [new], LABEL)
        return _result(edit, reason)

    return await worked_on(session, document, work)


async def _previewed(session: Session, asked: Asked, pending: Pending) -> Result:
    """Stream an edit; however it ends, its last notification says so."""
    previews = session.previews
    if reason := previews.begin(pending):
        return Result(applied=False, reason=reason)

    def started(flight: Flight) -> None:
        pending.flight = flight

    async def work(completer: Completer) -> Result:
        edit = await _edited(session, completer, asked, lambda new: previews.show(pending, new))
        pending.flight = None  # from here on an end of the edit is none of the request
        if edit.reason:
            previews.end(pending, edit.reason, edit.done)
        else:
            previews.finish(pending, edit.new_text, edit.done)
        return _result(edit, edit.reason)

    reason, done = "The edit failed; see the log.", DoneKind.ERROR
    try:
        result = await worked_on(session, asked.document, work, started)
        reason = result.reason
    except asyncio.CancelledError:
        reason, done = "The request was cancelled.", DoneKind.CANCELLED
        raise
    finally:
        pending.flight = None
        if reason:
            previews.end(pending, reason, done)
    return msgspec.structs.replace(
        result, applied=False, id=pending.preview.id, pending=pending.is_ready
    )


async def _edited(
    session: Session,
    completer: Completer,
    asked: Asked,
    on_draft: OnEditDraft | None = None,
) -> Edit:
    limit = session.configuration_of(asked.document.uri).edit_deadline_ms
    return await completer.edit_lines(asked.request, on_draft=on_draft, deadline_ms=limit)


def _lines_of(session: Session, document: Document, chosen: Range) -> tuple[int, int]:
    """The first and the last line that a range touches."""
    places = (chosen.start, chosen.end)
    (first, _), (last, end) = sorted(document.place(p, session.encoding) for p in places)
    if end == 0 and last > first:
        last -= 1  # a selection of whole lines ends before the first character of the next
    return first, last


def _result(edit: Edit, reason: str) -> Result:
    return Result(not reason, reason, edit.steps, edit.forwards, edit.ms)
