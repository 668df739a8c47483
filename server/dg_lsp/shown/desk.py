"""Where a request for a suggestion is settled: from what was shown before, or by the engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from dg_engine.job import Priority

from dg_lsp.completion import Completer, Completion
from dg_lsp.documents import Document, typed_between
from dg_lsp.lines import Lines, split_lines
from dg_lsp.notebooks import ALONE, Surroundings, language_of_cell
from dg_lsp.prompts.view import CursorView, Snippet, view_at
from dg_lsp.shown.changes import change_between
from dg_lsp.shown.debounce import LATE_SECONDS, Habits
from dg_lsp.shown.offer import Fate, Offer, moved, rests, typed_at, without_typed
from dg_lsp.shown.pairs import may_be_paired
from dg_lsp.shown.prefetch import Prefetch, as_if_taken
from dg_lsp.shown.shelf import Shelf
from dg_lsp.silences import CHANGED, REJECTED
from dg_lsp.status import Silence

CHOICES = 3
"""How many texts a request offers that the user made, where the model has that many."""


class Request(NamedTuple):
    """A cursor in a document's version, in code points."""

    document: Document
    line: int
    column: int
    path: str
    """As a model is told."""
    invoked: bool
    """Whether the user asked, and did not just type."""
    around: Surroundings = ALONE
    """What a model sees beside the document."""
    context: tuple[Snippet, ...] = ()
    """What may help from elsewhere."""
    read_at: float | None = None
    """When it was read, in seconds of `time.monotonic`; None where that does not count."""

    @property
    def language(self) -> str:
        """Of the text at the cursor."""
        return self.document.language if self.around is ALONE else language_of_cell(self.document)

    @property
    def choices(self) -> int:
        """How many texts to offer at most."""
        return CHOICES if self.invoked else 1

    @property
    def view(self) -> CursorView:
        """The text around the cursor."""
        return self.view_in(self.document.lines, self.line, self.column)

    def in_version(self, newest: Document) -> Request | None:
        """The same cursor behind what was typed at it since; None when anything else changed.

        None as well when closers may have been added behind the cursor: where it is now cannot be
        told.
        """
        if newest is self.document:
            return self
        typed = typed_between(self.document, newest, self.line, self.column)
        if typed is None or may_be_paired(typed):
            return None
        return self._replace(document=newest, column=self.column + len(typed))

    def view_in(self, lines: Lines, line: int, column: int) -> CursorView:
        """The text around a place of another version."""
        whole, first = self.around.whole(lines)
        return view_at(
            whole,
            first + line,
            column,
            path=self.path,
            language=self.language,
            context=self.context,
        )


class Served(NamedTuple):
    """Texts for a cursor in a document's version, and the number of the offer they are of."""

    document: Document
    line: int
    column: int
    texts: list[str]
    offer: int


class Desk:
    """What one session has suggested, and what became of it."""

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.habits = Habits()
        self.shelf = Shelf(lambda taken: self.habits.ended(taken=taken))
        self.prefetch = Prefetch()
        self._sleep = sleep
        self._clock = clock

    def changed(self, old: Document, new: Document) -> None:
        """A document was edited."""
        self.shelf.changed(old, new)
        self._follow()

    def surroundings_changed(self, uris: Sequence[str]) -> None:
        """What stands around these documents, cells of a notebook, was edited."""
        if uris:
            self.shelf.surroundings_changed(uris)
            self._follow()

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self.shelf.closed(uri)
        self._follow()

    def forget(self) -> None:
        """Settings changed, so what was shown counts no more."""
        self.shelf.clear()
        self._follow()

    def fitting(self, request: Request, completer: Completer | None = None) -> Served | None:
        """What was shown and still fits what was typed since; the engine is not asked.

        When the document changed elsewhere, an offer counts if the model would see again what it
        saw, which takes the `completer` to tell.
        """
        document, line, column = request.document, request.line, request.column
        self.shelf.turn_to(document, line, column)
        for offer, typed in self.shelf.open_at(document, line, column):
            texts = self._allowed(request, rests(offer, typed))
            if texts and offer.choices >= request.choices and _stands(offer, request, completer):
                self.shelf.served(offer.number)
                return Served(document, line, column, texts, offer.number)
        return None

    async def ask(self, completer: Completer, request: Request, deadline_ms: int) -> Completion:
        """The engine's answer, or the one that it gave to the same prompt and canvas."""

        async def before_engine() -> None:
            self.prefetch.cancel()  # it was for something else
            wait = 0.0 if request.invoked else self.habits.wait_seconds
            if request.read_at is not None:
                # The next key may come from the moment of this one on, also while we prepare.
                wait -= self._clock() - request.read_at
            if wait > LATE_SECONDS:
                await self._sleep(wait - LATE_SECONDS)

        completion = await completer.complete_at(
            request.view,
            deadline_ms=deadline_ms,
            alternatives=request.choices,
            before_engine=before_engine,
            goes_on=self._earlier(request),
        )
        if completion.forwards:
            self.habits.answered(completion.ms["total"] - completion.ms.get("wait", 0.0))
        return completion

    def offered(
        self, request: Request, newest: Document, completion: Completion
    ) -> Served | Silence:
        """Note what was answered; what of it fits the newest version, or why nothing does."""
        asked, line, column = request.document, request.line, request.column
        texts = self._allowed(request, [completion.insert, *completion.alternatives])
        if not texts:
            return REJECTED
        offer = Offer.at(
            asked, line, column, texts, seen=completion.seen, choices=request.choices
        )  # fmt: skip
        change = None if newest is asked else change_between(asked.lines, newest.lines)
        now = offer if change is None else moved(offer, newest.lines, change)
        there = request.in_version(newest)
        if now is None or there is None or now.fate is Fate.REJECTED:
            return CHANGED  # nobody saw it
        typed = typed_at(now, newest.lines, line, there.column)
        left = [] if typed is None else rests(now, typed)
        if not left:
            return CHANGED
        return Served(newest, line, there.column, left, self.shelf.put(now).number)

    def prepare(self, completer: Completer, served: Served, request: Request, limit: int) -> None:
        """Ask for what comes behind the first text, as if it were taken."""

        def work() -> Awaitable[Completion]:
            ahead = as_if_taken(served.document.lines, served.line, served.column, served.texts[0])
            view = request.view_in(*ahead)
            return completer.complete_at(view, deadline_ms=limit, priority=Priority.PREFETCH)

        self.prefetch.begin(served.offer, work)

    def _allowed(self, request: Request, texts: list[str]) -> list[str]:
        """Without what was rejected there, unless the user asks for it."""
        if request.invoked:
            return texts
        return self.shelf.allowed(request.document, request.line, request.column, texts)

    def _earlier(self, request: Request) -> str:
        """What was shown for the cursor when the model saw something else; one line of it.

        The user asks for alternatives, which one seeded canvas has not.
        """
        if request.invoked:
            return ""
        for offer, typed in self.shelf.open_at(request.document, request.line, request.column):
            for rest in self._allowed(request, rests(offer, typed)):
                return "" if len(split_lines(rest)) > 1 else rest
        return ""

    def _follow(self) -> None:
        self.prefetch.follow(self.shelf.get(self.prefetch.number))


def _stands(offer: Offer, request: Request, completer: Completer | None) -> bool:
    """Whether the model would see for an offer what it saw."""
    if offer.alone:
        return True
    if completer is None:
        return False
    before = without_typed(offer, request.document.lines, request.line)
    view = request.view_in(before, offer.line, len(offer.before))
    return completer.key_at(view, alternatives=offer.choices) == offer.seen
