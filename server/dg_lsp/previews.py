"""Edits that are shown before they are applied: streamed, moved, accepted or dropped."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable

import msgspec
from dg_engine.job import DoneKind

from dg_lsp.documents import ContentChange, Document
from dg_lsp.flights import Flight
from dg_lsp.positions import Encoding, Position, Range
from dg_lsp.regions import Region, followed
from dg_lsp.results import EditDraft
from dg_lsp.uris import normalised

MOST_WAITING = 32
"""Edits that may wait for their user at once; the oldest goes first."""
TOUCHED = "The lines were changed, so the edit was dropped."
CLOSED = "The document was closed, so the edit was dropped."
DISCARDED = "The edit was discarded."
REPLACED = "A newer edit of these lines took its place."
TOO_MANY = "Too many edits wait; accept or discard them."


class Preview(msgspec.Struct, frozen=True):
    """The parameters of `dg/editPreview`: one edit as it stands."""

    id: str
    uri: str
    version: int
    """The document's version that `range` is of."""
    range: Range
    """The lines that `text` would replace."""
    text: str
    step: int
    """Denoise steps so far; 0 when the edit begins."""
    done: DoneKind | None
    """None while it is worked on."""
    entropy: float
    """Mean nats over what may change: how unsure the model still is."""
    reason: str = ""
    """Why the edit is over without anything to accept."""


class Pending:
    """One edit that waits for its model or its user."""

    def __init__(self, preview: Preview, region: Region) -> None:
        self.preview = preview
        self.region = region
        self.flight: Flight | None = None
        """The request that still works on it."""
        self.applying = False
        """Whether the editor was asked to apply it."""

    @property
    def is_ready(self) -> bool:
        """Whether it may be accepted."""
        return self.preview.done is not None and not self.preview.reason


class Previews:
    """Every pending edit of a session, by id."""

    def __init__(self, tell: Callable[[Preview], None], encoding: Callable[[], Encoding]) -> None:
        self._tell = tell
        self._encoding = encoding
        self._numbers = itertools.count(1)
        self._pending: dict[str, Pending] = {}
        self._prepared: weakref.WeakSet[Pending] = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._pending)

    def get(self, edit_id: str) -> Pending | None:
        """A pending edit, None when it is over."""
        return self._pending.get(edit_id)

    def prepare(self, document: Document, first: int, last: int, old: str) -> Pending:
        """An edit of the lines `first` to `last` that was asked for and is not begun yet.

        It follows its lines as long as somebody holds it: a request may be cancelled before it
        is handled.
        """
        region = Region.of(document.lines, first, last)
        edit_id = f"edit-{next(self._numbers)}"
        place = self._range_of(document, region)
        preview = Preview(edit_id, document.uri, document.version, place, old, 0, None, 0.0)
        pending = Pending(preview, region)
        self._prepared.add(pending)
        return pending

    def begin(self, pending: Pending) -> str:
        """Tell of an edit, or say why it is over; older edits of its lines end."""
        self._prepared.discard(pending)
        if pending.preview.reason:
            return pending.preview.reason
        region = pending.region
        for other in self._of(pending.preview.uri):
            overlaps = other.region.first <= region.last and region.first <= other.region.last
            if overlaps and other not in self._prepared:
                self.end(other, REPLACED)
        while len(self._pending) >= MOST_WAITING:
            self.end(next(iter(self._pending.values())), TOO_MANY)
        self._pending[pending.preview.id] = pending
        self._tell(pending.preview)
        return ""

    def show(self, pending: Pending, draft: EditDraft) -> None:
        """Tell of a draft."""
        self._change(pending, text=draft.text, step=draft.step, entropy=draft.entropy)

    def finish(self, pending: Pending, text: str, done: DoneKind) -> None:
        """The edit may be accepted from now on."""
        pending.flight = None
        self._change(pending, text=text, done=done)

    def end(self, pending: Pending, reason: str, done: DoneKind = DoneKind.CANCELLED) -> None:
        """Drop an edit, and stop the work on it; one that is over stays over."""
        begun = self._pending.pop(pending.preview.id, None) is not None
        if not begun and pending not in self._prepared:
            return
        self._prepared.discard(pending)
        if not pending.applying:
            pending.preview = msgspec.structs.replace(pending.preview, done=done, reason=reason)
            if begun:
                self._tell(pending.preview)
        if pending.flight is not None:
            pending.flight.end(reason)

    def settle(self, pending: Pending, reason: str) -> None:
        """The editor answered: applied without a `reason`; else the edit waits on, if it can."""
        pending.applying = False
        if not reason:
            self._pending.pop(pending.preview.id, None)
        elif pending.preview.id not in self._pending:
            self._pending[pending.preview.id] = pending
            self.end(pending, TOUCHED)

    def follow(self, before: Document, change: ContentChange, after: Document) -> None:
        """A document changed: edits elsewhere in it move, edits of what changed end."""
        for pending in self._of(before.uri):
            region = followed(pending.region, before, change, after, self._encoding())
            if region is None:
                self.end(pending, TOUCHED)
            else:
                pending.region = region

    def moved(self, document: Document) -> None:
        """Tell of the edits that stand elsewhere in this newest version."""
        for pending in self._of(document.uri):
            place = self._range_of(document, pending.region)
            tell = place != pending.preview.range
            pending.preview = msgspec.structs.replace(
                pending.preview, version=document.version, range=place
            )
            if tell and not pending.applying and pending not in self._prepared:
                self._tell(pending.preview)

    def close(self, uri: str) -> None:
        """A document was closed."""
        for pending in self._of(uri):
            self.end(pending, CLOSED)

    def _change(self, pending: Pending, **changes: object) -> None:
        if pending.preview.id in self._pending:
            pending.preview = msgspec.structs.replace(pending.preview, **changes)
            self._tell(pending.preview)

    def _of(self, uri: str) -> list[Pending]:
        if not self._pending and not self._prepared:
            return []
        key = normalised(uri)
        waiting = [*self._pending.values(), *self._prepared]
        return [pending for pending in waiting if normalised(pending.preview.uri) == key]

    def _range_of(self, document: Document, region: Region) -> Range:
        encoding = self._encoding()
        end = document.position(*region.end, encoding)
        return Range(Position(region.first, 0), end)
