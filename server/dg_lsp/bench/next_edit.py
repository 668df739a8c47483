"""Plays cases of next edits: an author who makes one edit and takes every right proposal after it.

The first wrong proposal ends a case, and so does silence.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from dg_lsp.bench.next_edits import Case, LineChange, changed
from dg_lsp.completion import Completer
from dg_lsp.documents import Document
from dg_lsp.lines import Lines, body_of
from dg_lsp.next_edit.desk import NextEdits
from dg_lsp.next_edit.finder import found_after
from dg_lsp.next_edit.proposal import Origin, Proposal

DEADLINE_MS = 600_000
"""Time is measured and not bounded, so that a busy machine gives the same counts."""
_MOST_PROPOSALS = 24
URI = "file:///case/"

Propose = Callable[[NextEdits, Document, str], Awaitable[Proposal | None]]
"""What is proposed for a document whose edits the desk knows."""


class Shown(msgspec.Struct, frozen=True):
    """One proposal."""

    origin: Origin
    right: bool
    """Whether the line is then what it has to be."""
    on_the_way: bool
    """Whether it is wrong, but nearer to what it has to be than it was."""
    ms: float


class Outcome(msgspec.Struct, frozen=True):
    """What came of a case."""

    name: str
    kind: str
    places: int
    """Lines that were left to do."""
    shown: list[Shown]
    missed: int
    """Lines of those that were not proposed."""
    silent_ms: float
    """What the last answer took, when it was silence; else 0."""


async def by_server(
    desk: NextEdits, document: Document, path: str, completer: Completer
) -> Proposal | None:
    """As the server does: what is certain, else what the model agrees with."""

    async def ready() -> Completer:
        return completer

    found = await desk.propose(desk.request(document, path), ready, DEADLINE_MS)
    return None if isinstance(found, str) else found


async def by_text(desk: NextEdits, document: Document, path: str) -> Proposal | None:
    """Only what is certain without the model."""
    asked = desk.request(document, path)
    return found_after(document.lines, document.language, asked.edits, known=asked.known).certain


async def unasked(desk: NextEdits, document: Document, path: str) -> Proposal | None:
    """What the model would be asked about, without asking it."""
    edits = desk.history.of(document.uri)
    found = found_after(document.lines, document.language, edits)
    return found.certain or next(iter(found.likely), None)


async def play(
    case: Case,
    propose: Propose,
    *,
    by_hand: int = 1,
    language: str = "python",
    told: Callable[[NextEdits, Document], None] = lambda desk, document: None,
) -> Outcome:
    """Edit, ask, take what is right, and ask again; the author makes `by_hand` edits alone.

    `told` hears of every version and may tell the desk what other servers say of it.
    """
    author = _Author(case, language)
    told(author.desk, author.document)
    left = {change.line for change in case.rest}
    for change in [case.first, *case.rest][:by_hand]:
        author.make(change)
        left.discard(change.line)
    places = len(left)
    shown: list[Shown] = []
    silent_ms = 0.0
    while len(shown) < _MOST_PROPOSALS:
        told(author.desk, author.document)
        started = time.perf_counter()
        proposal = await propose(author.desk, author.document, case.path)
        ms = (time.perf_counter() - started) * 1e3
        if proposal is None:
            silent_ms = ms
            break
        text = body_of(proposal.made(author.document.lines))
        was = body_of(author.document.lines[proposal.line])
        right = case.is_right(proposal.line, text)
        nearer = not right and case.is_nearer(proposal.line, was, text)
        shown.append(Shown(proposal.origin, right, nearer, ms))
        if not shown[-1].right:
            break
        left.discard(proposal.line)
        author.desk.offer(author.document, proposal)
        author.make(LineChange(proposal.line, text))
    return Outcome(case.name, case.kind, places, shown, len(left), silent_ms)


async def play_all(
    cases: Sequence[Case],
    propose: Propose,
    *,
    by_hand: int = 1,
    after_each: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Every case in turn."""
    found: list[Outcome] = []
    for case in cases:
        found.append(await play(case, propose, by_hand=by_hand))
        after_each()
        await asyncio.sleep(0)  # let a key interrupt it
    return found


async def measure(
    cases: Sequence[Case], completer: Completer, after_each: Callable[[], None]
) -> dict[str, list[Outcome]]:
    """Every case in every way, by the names of next_edit_report.WAYS."""

    async def asked(desk: NextEdits, document: Document, path: str) -> Proposal | None:
        return await by_server(desk, document, path, completer)

    longer = [case for case in cases if len(case.rest) > 1]
    return {
        "server": await play_all(cases, asked, after_each=after_each),
        "text": await play_all(cases, by_text, after_each=after_each),
        "unasked": await play_all(cases, unasked, after_each=after_each),
        "twice": await play_all(longer, asked, by_hand=2, after_each=after_each),
    }


class _Author:
    """The document of a case, and what a session knows of its edits."""

    def __init__(self, case: Case, language: str) -> None:
        self.desk = NextEdits()
        self.document = Document(URI + case.path, 1, language, Lines.of(case.text))

    def make(self, change: LineChange) -> None:
        """One edit, however it came about."""
        old = self.document
        lines = changed(old.lines, change)
        self.document = msgspec.structs.replace(old, lines=lines, version=old.version + 1)
        self.desk.changed(old, self.document)
