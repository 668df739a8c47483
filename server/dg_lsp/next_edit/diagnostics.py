"""What other servers say is wrong, as places where the edit that caused it goes on.

An editor passes on the diagnostics of a document when it asks for the next edit, or for code
actions. One that says that a name is unknown, and that names what an edit gave another name, tells
that the name is left over there, in any language. It is the edit's doing when it was not told of
before that edit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dg_lsp.lines import Lines, body_of
from dg_lsp.next_edit.history import Edited
from dg_lsp.next_edit.renames import MOST_RENAMES, Rename, Renamed, Spot, renamed_in
from dg_lsp.uris import normalised

MOST_TOLD = 1_000
"""Diagnostics of one document; of what is more, nobody knows all."""
_MOST_CHARS = 300
"""Of a message."""
_NO_SUCH_NAME = re.compile(
    r"\b(?:undefined|undeclared|unresolved|unknown|unrecognized)\b"
    r"|\b(?:not|isn't|never) (?:been )?(?:defined|declared|found|exist|in scope|a member)\b"
    r"|\b(?:does not|doesn't) exist\b|\b(?:cannot|can't|could not|couldn't) (?:find|resolve)\b"
    r"|\bcannot access (?:attribute|member)\b"
    r"|\b(?:has )?no (?:such )?(?:attribute|field|member|method|parameter|property|name|symbol)\b"
    r"|\bunexpected (?:keyword )?argument\b",
    re.IGNORECASE,
)
"""How language servers say that nothing has this name; an unused name is another matter."""
_QUOTED = r"(?:[\"'`‘“]{0}[\"'`’”]|[\"'`‘“]{0}(?=\()|: {0}(?!\w))"
"""How they name it."""
_IMPORT = re.compile(
    r"\s*(?:from|import|mod|require\w*|#\s*include)\b|\s*(?:pub )?use\s+[\w:{]"
    r"|\s*export\s*(?:type\s*)?[{*]|.*\brequire\s*\(|.*\bfrom\s+[\"'\w]"
)
"""A line that names what something else defines: another name there is another thing."""


class Diagnostic(NamedTuple):
    """What is wrong within one line of one version, in code points."""

    line: int
    start: int
    end: int
    message: str


class Known(NamedTuple):
    """The diagnostics of a document's newest version, and since when they are known."""

    found: tuple[Diagnostic, ...] = ()
    told_at: tuple[int, ...] = ()
    """For each, the revision (`History.revision`) at which it was told first."""
    whole_from: int | None = None
    """The first revision for which everything was told; None when that never was."""

    def is_of(self, index: int, since: int) -> bool | None:
        """Whether a diagnostic came with an edit that began at a revision; None: nobody knows."""
        if self.whole_from is None or self.whole_from > since:
            return None
        return self.told_at[index] > since


NOTHING_KNOWN = Known()


class _Told(msgspec.Struct):
    """What was told of one document."""

    revision: int
    found: list[Diagnostic]
    first: dict[tuple[str, str], int]
    """Messages with the lines that they are about, and when they were told first."""
    whole_from: int | None = None


class Diagnostics:
    """Of every open document, as far as an editor has passed them on."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}

    def told(
        self, uri: str, lines: Lines, found: Sequence[Diagnostic], revision: int, *, whole: bool
    ) -> None:
        """Diagnostics of a document's newest version: some, or the `whole` of them."""
        held = self._told.setdefault(normalised(uri), _Told(revision, [], {}))
        if whole or revision != held.revision:
            held.found = []
        held.revision = revision
        cut = (one._replace(message=one.message[:_MOST_CHARS]) for one in found[:MOST_TOLD])
        held.found = list(dict.fromkeys([*held.found, *cut]))[-MOST_TOLD:]
        first = {_key(one, lines): revision for one in held.found} | (
            {} if whole else dict(list(held.first.items())[-MOST_TOLD:])
        )
        held.first = first | {key: held.first[key] for key in first if key in held.first}
        if whole and held.whole_from is None:
            held.whole_from = revision

    def of(self, uri: str, lines: Lines, revision: int) -> Known:
        """What is known of a version; nothing when it was edited since."""
        held = self._told.get(normalised(uri))
        if held is None or held.revision != revision:
            return Known()
        told_at = tuple(held.first[_key(one, lines)] for one in held.found)
        return Known(tuple(held.found), told_at, held.whole_from)

    def closed(self, uri: str) -> None:
        """A document was closed, or opened anew."""
        self._told.pop(normalised(uri), None)

    def forget(self) -> None:
        """Settings changed."""
        self._told.clear()


def _key(one: Diagnostic, lines: Lines) -> tuple[str, str]:
    return one.message, body_of(lines[one.line]).strip() if one.line < lines.count else ""


class Left(NamedTuple):
    """Names that are left over after a rename, where they are unknown now."""

    caused: Rename
    """Where that is the rename's doing."""
    perhaps: Rename
    """Where nobody knows whether it was so before."""


def left_over(lines: Lines, history: Sequence[Edited], known: Known) -> list[Left]:
    """What diagnostics say is left of the last renames, the newest first."""
    if not known.found:
        return []
    made: dict[tuple[str, str], list[tuple[Renamed, int]]] = {}
    for edit in history:
        for one in renamed_in(edit, lines):
            made.setdefault((one.old, one.new), []).append((one, edit.since))
    found: list[Left] = []
    for old, new in list(made)[:MOST_RENAMES]:
        done = made[old, new]
        others = [pair for pair in made if pair != (old, new)]
        if any(old in pair or new == pair[0] for pair in others):
            continue  # it became several things, or that became another
        if any(_IMPORT.match(lines[one.line]) for one, _ in done):
            continue
        since = min(began for _, began in done)
        spots: dict[bool | None, set[Spot]] = {True: set(), None: set(), False: set()}
        for index, one in enumerate(known.found):
            if (spot := _spot_of(one, lines, old)) is not None:
                spots[known.is_of(index, since)].add(spot)
        line = done[0][0].line
        caused, perhaps = (
            Rename(old, new, tuple(sorted(spots[way])), line, is_local=False)
            for way in (True, None)
        )
        found.append(Left(caused, perhaps))
    return found


def lines_of(known: Known, since: int) -> set[int]:
    """Lines on which something is wrong since an edit that began at a revision."""
    return {one.line for index, one in enumerate(known.found) if known.is_of(index, since)}


def _spot_of(one: Diagnostic, lines: Lines, name: str) -> Spot | None:
    """Where a diagnostic says that a name is unknown; None when it says anything else."""
    if one.line >= lines.count or not _NO_SUCH_NAME.search(one.message):
        return None
    if not re.search(_QUOTED.format(re.escape(name)), one.message):
        return None
    body = body_of(lines[one.line])
    whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    places = [found.start() for found in whole.finditer(body)]
    end = max(one.end, one.start + len(name))  # some tell only where it begins
    inside = [at for at in places if one.start <= at and at + len(name) <= end]
    return Spot(one.line, inside[0]) if len(inside) == 1 else None
