"""The offers of a session: the newest for each place, moved along with every edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from dg_lsp.documents import Document
from dg_lsp.shown.changes import change_between
from dg_lsp.shown.offer import (
    Fate,
    Offer,
    Typed,
    moved,
    rejected,
    typed_at,
    would_repeat,
)
from dg_lsp.uris import normalised

MOST_OFFERS = 64


class Shelf:
    """Offers, oldest first, at most `most` over all documents.

    `on_end` hears of each offer that was taken (True), or seen and not taken (False).
    """

    def __init__(self, on_end: Callable[[bool], None], most: int = MOST_OFFERS) -> None:
        self._on_end = on_end
        self._most = most
        self._offers: list[Offer] = []
        self._last = 0
        self._draws = False
        """Whether this editor says which offers it draws."""

    def __len__(self) -> int:
        return len(self._offers)

    @property
    def last(self) -> Offer | None:
        """The newest offer that is left."""
        return self._offers[-1] if self._offers else None

    def put(self, offer: Offer) -> Offer:
        """Note what is shown from now on; it gets a number."""
        self._last += 1
        numbered = msgspec.structs.replace(offer, number=self._last)
        self._offers.append(numbered)
        del self._offers[: -self._most]
        return numbered

    def changed(self, old: Document, new: Document) -> None:
        """Move the offers of a document along with an edit."""
        uri = normalised(new.uri)
        if not any(offer.uri == uri for offer in self._offers):
            return
        change = change_between(old.lines, new.lines)
        if change is None:
            return
        kept: list[Offer] = []
        for offer in self._offers:
            now = moved(offer, new.lines, change) if offer.uri == uri else offer
            now = now and self._judged(offer, now)
            if now is not None:
                kept.append(now)
        self._offers = kept

    def surroundings_changed(self, uris: Sequence[str]) -> None:
        """What a model sees around these documents is not what it was."""
        beside = {normalised(uri) for uri in uris}
        self._offers = [
            msgspec.structs.replace(offer, alone=False) if offer.uri in beside else offer
            for offer in self._offers
        ]

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._offers = [offer for offer in self._offers if offer.uri != normalised(uri)]

    def clear(self) -> None:
        """Forget everything."""
        self._offers = []

    def drawn(self, number: int) -> None:
        """The editor drew an offer. From now on one that is not drawn was not seen."""
        self._draws = True
        self._replace(number, drawn=True)

    def served(self, number: int) -> None:
        """An offer is shown again; it may be an older one."""
        self._offers.sort(key=lambda offer: offer.number == number)

    def open_at(self, document: Document, line: int, column: int) -> list[tuple[Offer, Typed]]:
        """Offers whose place a cursor is at and that were not rejected, newest first."""
        return [found for found in self._at(document, line, column) if not _is_rejected(found[0])]

    def allowed(self, document: Document, line: int, column: int, texts: list[str]) -> list[str]:
        """`texts` for a cursor without those that were rejected there."""
        gone = [found for found in self._at(document, line, column) if _is_rejected(found[0])]
        return [
            text
            for text in texts
            if not any(would_repeat(offer, typed, text) for offer, typed in gone)
        ]

    def turn_to(self, document: Document, line: int, column: int) -> None:
        """A cursor is somewhere: the last offer is rejected when it is not there any more."""
        last = self.last
        if last is None or last.fate is not Fate.OPEN or not self._was_seen(last):
            return
        here = last.uri == normalised(document.uri)
        if here and typed_at(last, document.lines, line, column) is None:
            self._on_end(False)
            self._offers[-1] = rejected(last)

    def _at(self, document: Document, line: int, column: int) -> list[tuple[Offer, Typed]]:
        uri = normalised(document.uri)
        return [
            (offer, typed)
            for offer in reversed(self._offers)
            if offer.uri == uri
            and (typed := typed_at(offer, document.lines, line, column)) is not None
        ]

    def _judged(self, was: Offer, now: Offer) -> Offer | None:
        """The offer as it is kept; its end is told when it has come to one."""
        if was.fate is not Fate.OPEN or now.fate is Fate.OPEN:
            return now
        if now.fate is Fate.REJECTED and not self._was_seen(was):
            return None  # nobody saw it, so nobody refused it
        self._on_end(now.fate is not Fate.REJECTED)
        return now

    def _was_seen(self, offer: Offer) -> bool:
        return offer.drawn or not self._draws

    def get(self, number: int) -> Offer | None:
        """An offer by its number."""
        return next((offer for offer in self._offers if offer.number == number), None)

    def taken(self, number: int) -> None:
        """The editor took an offer, which its text may have told already."""
        offer = self.get(number)
        if offer is not None and offer.fate is Fate.OPEN:
            self._on_end(True)
            self._replace(number, fate=Fate.TAKEN)

    def _replace(self, number: int, **changes: object) -> None:
        self._offers = [
            msgspec.structs.replace(offer, **changes) if offer.number == number else offer
            for offer in self._offers
        ]


def _is_rejected(offer: Offer) -> bool:
    return offer.fate is Fate.REJECTED
