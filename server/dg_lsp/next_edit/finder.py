"""Where an edit may go on, found without the model: certain proposals, and lines to ask it about.

Pure, and slow on a large file, so callers run it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from dg_lsp.brackets import balance_of
from dg_lsp.lines import Lines, body_of
from dg_lsp.next_edit.diagnostics import NOTHING_KNOWN, Known, left_over, lines_of
from dg_lsp.next_edit.history import Edited
from dg_lsp.next_edit.proposal import Origin, Proposal, minimal, restores
from dg_lsp.next_edit.renames import Rename, renames_of
from dg_lsp.next_edit.repeats import Repeat, repeats_of
from dg_lsp.prompts.view import CursorView, unix, view_at
from dg_lsp.suggestion import BALANCE_CHARS
from dg_lsp.syntax.grammars import parser_of
from dg_lsp.syntax.parsing import parsed
from dg_lsp.syntax.window import UNKNOWN, Window, own_window_of

MOST_CHARS = 200_000
"""Of a file that is looked through."""
MOST_LIKELY = 3
"""Lines that the model is asked about."""
SCOPES = "python"
"""The language whose scopes are known here."""
_TRIES = 3
SEEN_TWICE = 2
"""A change that was made so often is proposed as it is, without the model."""


class Found(NamedTuple):
    """What an edit suggests for the rest of its file."""

    certain: Proposal | None
    likely: list[Proposal]
    """As the edit would be repeated; the model has to agree. None where something is certain."""
    wider: list[Proposal]
    """The same where less is alike."""


def found_after(
    lines: Lines,
    language: str,
    history: Sequence[Edited],
    allowed: Callable[[Proposal], bool] = lambda proposal: True,
    known: Known = NOTHING_KNOWN,
) -> Found:
    """What the newest edit of a document suggests; what is not `allowed` is passed over.

    `known` are diagnostics of this version.
    """
    if not history or sum(len(line) for chunk in lines.chunks for line in chunk) > MOST_CHARS:
        return Found(None, [], [])
    renames = _renames(lines, language, history)
    newest = range(history[0].first, history[0].end)
    is_local = any(one.is_local and one.line in newest for one in renames)
    scopes = language == SCOPES
    repeats = [] if is_local else repeats_of(lines, history, scopes=scopes)
    seen = (one for one in repeats if one.seen >= SEEN_TWICE)
    once = [one for one in repeats if one.seen < SEEN_TWICE]

    def usable(proposal: Proposal) -> bool:
        """It is new, changes something, takes nothing back and leaves the code as whole."""
        return (
            allowed(proposal)
            and proposal.applied(lines) != lines
            and not restores(proposal, lines, history)
            and leaves_whole(proposal, lines, language)
        )

    left = left_over(lines, history, known)
    certain = chain(
        chain.from_iterable(_of_rename(rename, lines, Origin.RENAME) for rename in renames),
        chain.from_iterable(_of_rename(one.caused, lines, Origin.DIAGNOSTIC) for one in left),
        _of_repeats(lines, seen, Origin.REPEAT),
    )
    first = next(filter(usable, certain), None)
    if first is not None:
        return Found(first, [], [])
    wrong = lines_of(known, history[0].since)
    once.sort(key=lambda one: one.line not in wrong)
    near, far = (
        _of_repeats(lines, [o for o in once if (o.near or o.line in wrong) is near], Origin.MODEL)
        for near in (True, False)
    )
    perhaps = chain.from_iterable(_of_rename(one.perhaps, lines, Origin.MODEL) for one in left)
    likely, wider = filter(usable, chain(perhaps, near)), filter(usable, far)
    return Found(None, list(islice(likely, MOST_LIKELY)), list(islice(wider, MOST_LIKELY)))


def _renames(lines: Lines, language: str, history: Sequence[Edited]) -> list[Rename]:
    if language != SCOPES:
        return []
    parser = parser_of(language)
    assert parser is not None, "it has a grammar"
    raw = unix(lines.text()).encode()
    return renames_of(parsed(parser, raw), raw, lines, history)


def _of_rename(rename: Rename, lines: Lines, origin: Origin) -> Iterator[Proposal]:
    """One proposal a line, the nearest behind the edit first, then those before it."""
    numbers, at = {spot.line for spot in rename.spots}, rename.line
    for number in sorted(numbers, key=lambda n: (n < at, abs(n - at))):
        yield minimal(lines, number, _renamed(lines, rename, number), origin)


def _renamed(lines: Lines, rename: Rename, number: int) -> str:
    """A line with the new name at every spot."""
    line = body_of(lines[number])
    columns = sorted((spot.column for spot in rename.spots if spot.line == number), reverse=True)
    for column in columns:
        line = line[:column] + rename.new + line[column + len(rename.old) :]
    return line


def _of_repeats(lines: Lines, repeats: Iterable[Repeat], origin: Origin) -> Iterator[Proposal]:
    return (minimal(lines, one.line, one.new, origin) for one in repeats)


def leaves_whole(proposal: Proposal, lines: Lines, language: str) -> bool:
    """Whether brackets and syntax around a proposal are no worse with it."""
    view = view_around(lines, proposal.line, "", language)
    old, new = texts(proposal, lines)
    before, after = view.before[-BALANCE_CHARS:], view.after[:BALANCE_CHARS]
    faults = [balance_of(before + text + after, language).faults for text in (old, new)]
    if faults[1] > faults[0]:
        return False
    window = own_window_of(view)
    return window is None or _faults(window, new) <= _faults(window, old)


def _faults(window: Window, text: str) -> int:
    """Faults with a text; a machine that is busy for a moment is asked again."""
    return next(
        (found for _ in range(_TRIES) if (found := window.faults_with(text)) < UNKNOWN), UNKNOWN
    )


def texts(proposal: Proposal, lines: Lines) -> tuple[str, str]:
    """A proposal's line as it is and as it would be, with the break of the line before it."""
    lead = "\n" if proposal.line else ""
    old, new = body_of(lines[proposal.line]), body_of(proposal.made(lines))
    return lead + old, lead + new


def view_around(lines: Lines, line: int, path: str, language: str) -> CursorView:
    """The text on both sides of a line: up to the end of the line before, and from its own end."""
    above = max(line - 1, 0)
    column = len(body_of(lines[above])) if line > 0 else 0
    return view_at(lines, above, column, path=path, language=language, skip_to=line + 1)
