"""Masks what looks like a secret, each character by an `x`, so that every column stays.

Nothing here guards a secret for certain: it keeps the usual ones out of prompts. Time is linear in
the length of the text; lines seen before cost a look-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from dg_lsp.privacy import assignments, formats
from dg_lsp.privacy.looks import holds_any
from dg_lsp.remembered import Remembered

MASK = "x"
MIN_MASKED = 8
"""A run of as many masks in a suggestion is a secret that was copied."""

_LONGEST_REMEMBERED = 2_000
_remembered: Remembered[str] = Remembered(65_536)
"""Lines and what is shown of them; as many as have their ids kept."""
_KEPT = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""All but what anybody takes for a line break."""
_MASKED = re.compile(rf"{MASK}{{{MIN_MASKED},}}|://[^\s/@:]*:{MASK}+@")

_HINTS = tuple(dict.fromkeys((*formats.HINTS, *assignments.HINTS)))
_KEY_MARK = assignments.KEY_MARK
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_RUN = re.compile(r"\\[a-z]|[A-Za-z0-9+/=]{2,}")
_KEY_LINE = re.compile(
    r"""[\s"'`#*|>]*(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):.{0,200}|(?:[A-Za-z0-9+/=]{16,100})?)"""
    r"""(?:\\[nr])*[\s"'`+,\\]*"""
)
_LONG_RUN = re.compile(r"[A-Za-z0-9+/=]{32,}")
_LONGEST_KEY_LINE = 300
_LONGEST_KEY = 400
"""Lines of a private key at most; a mark without its end must not mask a whole file."""


def masked(text: str) -> str:
    """`text` with secrets masked: as many characters, the same line breaks; `text` itself where
    there are none."""
    lines = _masked_lines(text.split("\n"))
    if _KEY_MARK in text:
        for index, start, end in _key_spans(lines):
            line = lines[index]
            lines[index] = line[:start] + _KEY_RUN.sub(_mask_run, line[start:end]) + line[end:]
    shown = "\n".join(lines)
    return text if shown == text else shown


masked_lately = lru_cache(16)(masked)
"""As `masked`, for what is asked for again with every key: the text above the cursor's line."""


def may_hold_key(text: str) -> bool:
    """Whether a private key begins or ends in `text`: what stands far from there may be of it."""
    return _KEY_MARK in text


def holds_mask(text: str) -> bool:
    """Whether text that a model wrote repeats a masked secret."""
    return _MASKED.search(text) is not None


def _masked_lines(lines: list[str]) -> list[str]:
    known = _remembered.get_all(lines)
    if None not in known:
        return cast("list[str]", known)
    new = list(
        dict.fromkeys(line for line, shown in zip(lines, known, strict=True) if shown is None)
    )
    hinting = _hinting_lines("\n".join(new))
    made = {line: _masked_now(line) if n in hinting else line for n, line in enumerate(new)}
    for line, shown in made.items():
        if len(line) <= _LONGEST_REMEMBERED:
            _remembered.put(line, shown)
    pairs = zip(lines, known, strict=True)
    return [made[line] if shown is None else shown for line, shown in pairs]


def _hinting_lines(text: str) -> set[int]:
    """The lines in which a secret could be found, by one search of them all for each hint."""
    lowered = text.lower()  # which leaves line breaks where they are, if not columns
    found: set[int] = set()
    for hint in _HINTS:
        number = counted = 0
        at = lowered.find(hint)
        while at >= 0:
            number += lowered.count("\n", counted, at)
            found.add(number)
            counted = lowered.find("\n", at)
            at = -1 if counted < 0 else lowered.find(hint, counted)
    return found


def _masked_now(line: str) -> str:
    spans: list[tuple[int, int]] = []
    if holds_any(line, formats.HINTS):
        spans += formats.issued_secrets(line)
    if holds_any(line, assignments.HINTS):
        # Of a longer line only a part may be here.
        whole = len(line) <= _LONGEST_REMEMBERED
        spans += (
            assignments.assigned_secrets(line)
            if whole
            else assignments.assigned_secrets_of_a_part(line)
        )
    return _with_masks(line, spans) if spans else line


def _with_masks(line: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in sorted(spans):
        start = max(start, done)
        if start < end:
            pieces += (line[done:start], _KEPT.sub(MASK, line[start:end]))
            done = end
    return "".join((*pieces, line[done:]))


def _mask_run(run: re.Match[str]) -> str:
    return run[0] if run[0].startswith("\\") else MASK * len(run[0])


def _key_spans(lines: list[str]) -> list[tuple[int, int, int]]:
    """Line, start and end of what stands between the marks of private keys.

    A window of text may cut a key in two, so a mark without its partner counts as far as the lines
    look like a key's.
    """
    spans: list[tuple[int, int, int]] = []
    opened: int | None = None
    closed = -1
    for index, line in enumerate(lines):
        begin, end = _BEGIN.search(line), _END.search(line)
        if end is not None and (begin is None or end.start() < begin.start()):
            if opened is None:
                spans += _whole(lines, _upwards(lines, index, max(closed, index - _LONGEST_KEY)))
            elif any(_LONG_RUN.search(inner) for inner in lines[opened + 1 : index]):
                spans += _whole(lines, range(opened + 1, index))
            spans += [(index, *run.span()) for run in _LONG_RUN.finditer(line, 0, end.start())]
            opened, closed = None, index
        if begin is not None:
            if opened is not None:
                spans += _whole(lines, _downwards(lines, opened, index))
            inside = _END.search(line, begin.end())
            if inside is not None:
                spans.append((index, begin.end(), inside.start()))
            else:
                spans += [(index, *run.span()) for run in _LONG_RUN.finditer(line, begin.end())]
            opened, closed = None if inside is not None else index, index
        if opened is not None and index - opened >= _LONGEST_KEY:
            spans += _whole(lines, _downwards(lines, opened, index))
            opened, closed = None, index
    if opened is not None:
        spans += _whole(lines, _downwards(lines, opened, len(lines)))
    return spans


def _whole(lines: list[str], numbers: range) -> list[tuple[int, int, int]]:
    return [(number, 0, len(lines[number])) for number in numbers]


def _downwards(lines: list[str], mark: int, stop: int) -> range:
    """The lines behind `mark` that look like a key's."""
    last = mark + 1
    while last < stop and _is_key_line(lines[last]):
        last += 1
    return range(mark + 1, last)


def _upwards(lines: list[str], mark: int, stop: int) -> range:
    """The lines before `mark` that look like a key's; the last line of a key may be short."""
    first = mark - 1 if mark - 2 > stop and _LONG_RUN.search(lines[mark - 2]) else mark
    while first - 1 > stop and _is_key_line(lines[first - 1]):
        first -= 1
    return range(first, mark)


def _is_key_line(line: str) -> bool:
    return len(line) <= _LONGEST_KEY_LINE and _KEY_LINE.fullmatch(line) is not None
