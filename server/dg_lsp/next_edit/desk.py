"""How a request for the next edit is settled, and what became of the edits that were proposed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dg_lsp.completion import Completer
from dg_lsp.documents import Document
from dg_lsp.flights import Flight
from dg_lsp.lines import Lines, body_of
from dg_lsp.next_edit.diagnostics import Diagnostic, Diagnostics, Known
from dg_lsp.next_edit.finder import MOST_LIKELY, found_after
from dg_lsp.next_edit.guess import Place, agrees
from dg_lsp.next_edit.history import Edited, History
from dg_lsp.next_edit.proposal import Proposal
from dg_lsp.shown.changes import Change, change_between
from dg_lsp.uris import normalised

MOST_REMEMBERED = 256
"""Proposals whose fate is kept, over all documents."""
NOTHING = "Nothing suggests a further edit."
NOT_SURE = "The model does not agree with a further edit."
ENDED = "The document changed, or a newer request took the place of this one."


class Request(NamedTuple):
    """A version of a document, and the edits that led to it."""

    document: Document
    edits: list[Edited]
    path: str
    """As a model is told."""
    known: Known = Known()
    """What other servers say is wrong in it."""


class Offered(msgspec.Struct, frozen=True):
    """A proposal that was sent, for one version."""

    number: int
    uri: str
    """Normalised."""
    lines: Lines
    """The version that it was for; another one with the same text is another one."""
    line: int | None
    """Where it stands now; None when that cannot be told any more."""
    old: str
    """Its line without the proposal, and with it."""
    new: str
    drawn: bool = False


class NextEdits:
    """What one session was edited like, and what was proposed after it.

    A proposal is made once: when its document has changed since, whether by it or in spite of it,
    the same change of that line is not proposed again. Where the editor says what it draws,
    what it did not draw does not count.
    """

    def __init__(self) -> None:
        self.history = History()
        self._diagnostics = Diagnostics()
        self._offered: list[Offered] = []
        self._numbers = itertools.count(1)
        self._draws = False
        self._flights: dict[str, Flight] = {}

    def changed(self, old: Document, new: Document) -> None:
        """A document was edited; an answer that is on its way would be late."""
        change = change_between(old.lines, new.lines)
        if change is not None:
            self.history.changed(new.uri, old.lines, change, new.lines)
            self._offered = [_moved(one, normalised(new.uri), change) for one in self._offered]
        if (flight := self._flights.get(normalised(new.uri))) is not None:
            flight.end(ENDED)

    def closed(self, uri: str) -> None:
        """A document was closed, or opened anew."""
        self.history.closed(uri)
        self._diagnostics.closed(uri)
        self._offered = [one for one in self._offered if one.uri != normalised(uri)]

    def forget(self) -> None:
        """Settings changed."""
        self.history = History()
        self._diagnostics.forget()
        self._offered = []

    def diagnosed(
        self, document: Document, found: Sequence[Diagnostic], *, whole: bool = False
    ) -> None:
        """The editor passed on what is wrong in the newest version: some of it, or the `whole`."""
        revision = self.history.revision(document.uri)
        self._diagnostics.told(document.uri, document.lines, found, revision, whole=whole)

    def request(self, document: Document, path: str) -> Request:
        """What there is to go by now."""
        uri = document.uri
        known = self._diagnostics.of(uri, document.lines, self.history.revision(uri))
        return Request(document, self.history.of(uri), path, known)

    def follow(self, uri: str, flight: Flight) -> None:
        """A request for a document is being worked on."""
        self._flights[normalised(uri)] = flight

    def unfollow(self, uri: str, flight: Flight) -> None:
        """It no longer is."""
        if self._flights.get(normalised(uri)) is flight:
            del self._flights[normalised(uri)]

    async def propose(
        self,
        request: Request,
        completer: Callable[[], Awaitable[Completer]],
        deadline_ms: int,
    ) -> Proposal | str:
        """The next edit, or why there is none. The model is asked only where nothing is certain."""
        document = request.document
        allowed = self._allowed(document)
        found = await asyncio.to_thread(
            found_after,
            document.lines,
            document.language,
            request.edits,
            allowed,
            request.known,
        )
        if found.certain is not None or not (found.likely or found.wider):
            return found.certain or NOTHING
        asked = await completer()
        likely = [*found.likely, *(found.wider if asked.settings.next_edit_wider else ())]
        places = [
            Place(document.lines, proposal, request.path, document.language, request.edits[0])
            for proposal in likely[:MOST_LIKELY]
        ]
        return await _first(places, asked, deadline_ms) or NOT_SURE

    def offer(self, document: Document, proposal: Proposal) -> int:
        """Note what is sent; its number."""
        lines = document.lines
        one = Offered(
            number=next(self._numbers),
            uri=normalised(document.uri),
            lines=lines,
            line=proposal.line,
            old=body_of(lines[proposal.line]),
            new=body_of(proposal.made(lines)),
        )
        self._offered.append(one)
        del self._offered[:-MOST_REMEMBERED]
        return one.number

    def drawn(self, number: int) -> None:
        """The editor drew a proposal. From now on one that it does not draw was not seen."""
        self._draws = True
        self._offered = [
            msgspec.structs.replace(one, drawn=True) if one.number == number else one
            for one in self._offered
        ]

    def taken(self, number: int) -> None:
        """The editor took a proposal, so it was seen."""
        if self._draws:
            self.drawn(number)

    def _allowed(self, document: Document) -> Callable[[Proposal], bool]:
        """Whether a proposal was not made for an earlier version already."""
        uri, lines = normalised(document.uri), document.lines
        gone = {
            (one.line, one.old, one.new)
            for one in self._offered
            if one.uri == uri and (one.drawn or not self._draws) and one.lines is not lines
        }

        def allowed(proposal: Proposal) -> bool:
            was, made = body_of(lines[proposal.line]), body_of(proposal.made(lines))
            return gone.isdisjoint({(proposal.line, was, made), (None, was, made)})

        return allowed


def _moved(one: Offered, uri: str, change: Change) -> Offered:
    """A proposal once lines of a document changed."""
    if one.uri != uri or one.line is None or one.line < change.first:
        return one
    if one.line >= change.old_last:
        return msgspec.structs.replace(one, line=one.line + change.grown)
    return one if change.grown == 0 else msgspec.structs.replace(one, line=None)


async def _first(
    places: Iterable[Place], completer: Completer, deadline_ms: int
) -> Proposal | None:
    """The first proposal that the model agrees with."""
    async with asyncio.timeout(deadline_ms / 1e3):
        for place in places:
            if await agrees(completer, place, deadline_ms):
                return place.proposal
    return None
