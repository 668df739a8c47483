"""What was edited lately, with the lines as they were, followed through what is edited around."""

from __future__ import annotations

import msgspec

from dg_lsp.lines import Lines, alike_ends
from dg_lsp.shown.changes import Change
from dg_lsp.uris import normalised

MOST_EDITS = 32
"""Of one document."""
MOST_LINES = 48
"""Of one edit: what is longer was pasted or generated, and says nothing about other places."""


class Edited(msgspec.Struct, frozen=True):
    """Lines of a document that are not what they were."""

    first: int
    """The first of the lines as they are now, from zero."""
    count: int
    """How many they are now."""
    old: tuple[str, ...]
    """What they were, with their line breaks."""
    since: int = 0
    """The document's revision in which they were that last."""

    @property
    def end(self) -> int:
        """The line behind the last one."""
        return self.first + self.count

    def new(self, lines: Lines) -> list[str]:
        """What they are in the newest version."""
        return lines.between(self.first, self.end)

    def trimmed(self, lines: Lines) -> Edited:
        """Without the lines at both ends that are what they were."""
        new = self.new(lines)
        head, tail = alike_ends(self.old, new)
        old = self.old[head : len(self.old) - tail]
        return Edited(self.first + head, self.count - head - tail, old, self.since)


class History:
    """The last edits of every open document, the newest first."""

    def __init__(self) -> None:
        self._edits: dict[str, list[Edited]] = {}
        self._revisions: dict[str, int] = {}

    def of(self, uri: str) -> list[Edited]:
        """The last edits of a document, in its newest version."""
        return list(self._edits.get(normalised(uri), ()))

    def revision(self, uri: str) -> int:
        """How often a document has changed since it was opened."""
        return self._revisions.get(normalised(uri), 0)

    def changed(self, uri: str, before: Lines, change: Change, after: Lines) -> None:
        """Lines of a document changed; an edit that touches older ones is one with them."""
        key = normalised(uri)
        touched: list[Edited] = []
        others: list[Edited] = []
        for edit in self._edits.get(key, ()):
            if _touches(edit, change):
                touched.append(edit)
            elif edit.first >= change.old_last:
                moved = msgspec.structs.replace(edit, first=edit.first + change.grown)
                others.append(moved)
            else:
                others.append(edit)
        revision = self._revisions.get(key, 0)
        self._revisions[key] = revision + 1
        merged = _merged(touched, before, change, revision)
        if max(merged.count, len(merged.old)) <= MOST_LINES:
            merged = merged.trimmed(after)
            if merged.old or merged.count:
                others.insert(0, merged)
        self._edits[key] = others[:MOST_EDITS]

    def closed(self, uri: str) -> None:
        """A document was closed, or opened anew."""
        self._edits.pop(normalised(uri), None)
        self._revisions.pop(normalised(uri), None)


def _touches(edit: Edited, change: Change) -> bool:
    """Whether a change, in lines of the version before it, is a part of an edit.

    Lines that are added at either end are none, but for those put where some were taken away.
    """
    if edit.count == 0 and change.first == change.old_last:
        return edit.first == change.first
    return edit.first < change.old_last and change.first < edit.end


def _merged(touched: list[Edited], before: Lines, change: Change, revision: int) -> Edited:
    """The change and all edits that it touches as one."""
    first = min([change.first, *(edit.first for edit in touched)])
    end = max([change.old_last, *(edit.end for edit in touched)])
    old: list[str] = []
    at = first
    for edit in sorted(touched, key=lambda edit: edit.first):
        old += [*before.between(at, edit.first), *edit.old]
        at = edit.end
    old += before.between(at, end)
    since = min([revision, *(edit.since for edit in touched)])
    return Edited(first, end - first + change.grown, tuple(old), since)
