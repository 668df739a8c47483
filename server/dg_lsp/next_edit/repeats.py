"""The same change of the same tokens at other lines, as text; in any language."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dg_lsp.lines import Lines, alike, body_of
from dg_lsp.next_edit.history import Edited
from dg_lsp.next_edit.tokens import MOST_CHARS, Swap, is_name, swaps_between, tokens_of

MOST_PLACES = 200
"""Lines that are compared with an edit at most."""
ENOUGH_CONTEXT = 4
"""Tokens around a change that must be there again when it was seen only once.

Chosen for dg-tiny: its consent to less was often wrong.
"""
LEAST_CONTEXT = 3
"""The same for lines that a small model is not asked about."""
_SEEN_OFTEN = 3
"""A change made so often needs nothing around it."""
_FAR = 8
"""Tokens of context on each side that are compared."""
MOST_SWAPS = 4
"""Of one line; more of them are a line written anew."""


class Pattern(NamedTuple):
    """A change of tokens, and what must stand around them."""

    removed: tuple[str, ...]
    added: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    words: frozenset[str] = frozenset()
    """Names that must stand in the line, when none stands next to the change."""


class Repeat(NamedTuple):
    """A line where an edit may be repeated."""

    line: int
    new: str
    """The line without its break, once that is done."""
    alike: int
    """Tokens around the change that are as they were at the edit."""
    seen: int
    """How often the user made this change."""
    near: bool
    """Whether the line is as the edited one was, or tokens give way in enough of the same."""


def repeats_of(lines: Lines, history: Sequence[Edited], *, scopes: bool = True) -> list[Repeat]:
    """Lines where the newest edit's change can be made again.

    Without `scopes`, where nobody can tell whose a name is, a name that became another needs
    ENOUGH_CONTEXT that was always the same.

    Lines behind the edit come first, then those before it; where the change was made only once,
    those that are more alike come before.
    """
    if not history:
        return []
    newest, *older = history
    swaps = _swaps(newest, lines)
    if not swaps or len({swap.line for swap in swaps}) != 1 or len(swaps) > MOST_SWAPS:
        return []
    again = [one for edit in older for one in _lines_of(edit, lines) if _same_change(one, swaps)]
    seen = 1 + len(again)
    patterns = [_pattern(group) for group in zip(swaps, *again, strict=True)]
    if not all(_says_enough(pattern, seen) for pattern in patterns):
        return []
    renames = all(swap.names for swap in swaps)
    if renames and not scopes and min(map(_context, patterns)) < ENOUGH_CONTEXT:
        return []
    edited = {line for edit in history for line in range(edit.first, edit.end)}
    was = newest.old[swaps[0].line].strip()
    replaces = all(swap.removed for swap in swaps)
    found: list[Repeat] = []
    for line in _order(newest, lines):
        if line in edited or len(found) >= MOST_PLACES:
            continue
        made = _made(lines[line], patterns, loose=seen > 1)
        if made is not None:
            same = lines[line].strip() == was
            near = same or (replaces and made[1] >= ENOUGH_CONTEXT)
            found.append(Repeat(line, made[0], made[1], seen, near))
    return found if seen > 1 else sorted(found, key=lambda repeat: -repeat.alike)


def _swaps(edit: Edited, lines: Lines) -> list[Swap]:
    return swaps_between(edit.old, edit.new(lines)) or []


def _lines_of(edit: Edited, lines: Lines) -> list[list[Swap]]:
    """An edit's swaps, those of each line apart."""
    by_line: dict[int, list[Swap]] = {}
    for swap in _swaps(edit, lines):
        by_line.setdefault(swap.line, []).append(swap)
    return list(by_line.values())


def _same_change(one: Sequence[Swap], other: Sequence[Swap]) -> bool:
    return [(s.removed, s.added) for s in one] == [(s.removed, s.added) for s in other]


def _pattern(group: Sequence[Swap]) -> Pattern:
    """A swap, made once or several times, with the context that it always had."""
    swap, *others = group
    before, after = swap.before[-_FAR:], swap.after[:_FAR]
    words = {token for token in (*swap.before, *swap.after) if is_name(token)}
    for other in others:
        before = _common(before[::-1], other.before[::-1])[::-1]
        after = _common(after, other.after)
        words &= {*other.before, *other.after}
    named = any(map(is_name, (*before, *swap.removed, *after)))
    return Pattern(swap.removed, swap.added, before, after, frozenset(() if named else words))


def _common(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(one[: alike(one, other)])


def _says_enough(pattern: Pattern, seen: int) -> bool:
    """Whether there is anything to find the place by: a name, and something around it."""
    around = [*pattern.before, *pattern.removed, *pattern.after, *pattern.words]
    least = 2 - bool(pattern.removed) if seen < _SEEN_OFTEN else 0
    return _context(pattern) >= least and any(is_name(token) and len(token) > 1 for token in around)


def _context(pattern: Pattern) -> int:
    return len(pattern.before) + len(pattern.after)


def _order(newest: Edited, lines: Lines) -> Iterator[int]:
    yield from range(newest.end, lines.count)
    yield from range(newest.first - 1, -1, -1)


def _made(line: str, patterns: Sequence[Pattern], *, loose: bool) -> tuple[str, int] | None:
    """The line with every change made, and the least context; None where one does not fit.

    `loose` asks for the whole context of a pattern that was made from several edits; otherwise
    enough of it must be there.
    """
    if len(line) > MOST_CHARS or not all(_may_hold(line, pattern) for pattern in patterns):
        return None
    tokens = tokens_of(body_of(line))
    made: list[str] = []
    at, least = 0, 2 * _FAR
    for pattern in patterns:
        found = _places(tokens, pattern, loose=loose)
        if not found or not pattern.words.issubset(tokens):
            return None
        best = max(same for _, _, same in found)
        (start, end, same), *others = [place for place in found if place[2] == best]
        if others or start < at:
            return None  # which of them is meant cannot be told
        made += [*tokens[at:start], *pattern.added]
        at, least = end, min(least, same)
    return "".join([*made, *tokens[at:]]), least


def _may_hold(line: str, pattern: Pattern) -> bool:
    """A quick look; most lines end here."""
    nearest = (*pattern.before[-1:], *pattern.after[:1]) if not pattern.removed else ()
    wanted = (*pattern.removed, *nearest, *pattern.words)
    return all(token in line for token in wanted if not token.isspace())


def _places(tokens: Sequence[str], pattern: Pattern, *, loose: bool) -> list[tuple[int, int, int]]:
    """Where a pattern fits: start, end and how many tokens around are alike."""
    count = len(pattern.removed)
    whole = len(pattern.before) + len(pattern.after)
    said = [index for index, token in enumerate(tokens) if not token.isspace()]
    found: list[tuple[int, int, int]] = []
    for start in range(len(tokens) - count + 1):
        end = start + count
        if tuple(tokens[start:end]) != pattern.removed:
            continue
        if count == 0 and start < len(tokens) and tokens[start].isspace():
            continue  # the same place as behind the blank
        first, behind = bisect_left(said, start), bisect_left(said, end)
        before = _common(pattern.before[::-1], [tokens[i] for i in said[:first][-_FAR:]][::-1])
        after = _common(pattern.after, [tokens[i] for i in said[behind : behind + _FAR]])
        same = len(before) + len(after)
        both = count > 0 or (before and after)
        if same == whole if loose else same >= LEAST_CONTEXT and both:
            found.append((start, end, same))
    return found
