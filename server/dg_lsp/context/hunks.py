"""Where documents were edited last, followed through what is edited around."""

from __future__ import annotations

import msgspec

from dg_lsp.shown.changes import Change
from dg_lsp.uris import normalised

MOST_HUNKS = 8
_NEAR_LINES = 3
"""Edits so close belong together."""


class Hunk(msgspec.Struct, frozen=True):
    """Edited lines of a document, from zero, the last included."""

    uri: str
    """Normalised."""
    first: int
    last: int


class Hunks:
    """The places of the last edits, the newest first."""

    def __init__(self) -> None:
        self.newest: list[Hunk] = []

    def edited(self, uri: str, change: Change) -> None:
        """Lines of a document changed."""
        uri = normalised(uri)
        here = Hunk(uri, change.first, max(change.new_last - 1, change.first))
        others: list[Hunk] = []
        for hunk in self.newest:
            if hunk.uri != uri or hunk.last < change.first - _NEAR_LINES:
                others.append(hunk)
            elif hunk.first > change.old_last + _NEAR_LINES:
                grown = change.grown
                others.append(Hunk(uri, hunk.first + grown, hunk.last + grown))
            else:
                here = Hunk(
                    uri,
                    min(here.first, hunk.first),
                    max(here.last, hunk.last + change.grown, here.first),
                )
        self.newest = [here, *others][:MOST_HUNKS]

    def closed(self, uri: str) -> None:
        """A document was closed."""
        uri = normalised(uri)
        self.newest = [hunk for hunk in self.newest if hunk.uri != uri]
