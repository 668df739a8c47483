"""Patterns as Git reads them in ignore files: compiled by pathspec, matched step by step.

A path is judged step by step (`a/`, `a/b/`, `a/b/c.py`), because Git never looks into an excluded
folder: nothing inside can be taken back by a later pattern or a deeper file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

import msgspec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_FOLDER_MARK = "ps_d"
"""pathspec's group for the slash behind a name that a pattern spells out in full."""
_REMEMBERED_FOLDERS = 16_384


class Pattern(msgspec.Struct, frozen=True):
    """One line of an ignore file."""

    text: str
    """As it was written."""
    regex: re.Pattern[str]
    ignores: bool
    """False for a pattern that starts with `!`: it takes back what earlier ones ignore."""
    marks: bool
    """Whether the expression says where a folder's name ends."""


def compiled(written: str, *, ignore_case: bool) -> Pattern | None:
    """The pattern on a line; None for a comment, a blank line and what Git cannot read either."""
    line = written
    if line.rstrip().endswith("/**/"):
        line = line.rstrip() + "*/"  # the folders inside; pathspec takes in the outer one, too
    try:
        found = GitIgnoreSpecPattern(line.lower() if ignore_case else line)
    except GitIgnorePatternError:
        return None
    # pathspec leaves open whether its patterns are for text or for bytes.
    regex = cast("re.Pattern[str] | None", found.regex)  # pyright: ignore[reportUnknownMemberType]
    if regex is None or found.include is None:
        return None
    return Pattern(written.strip(), regex, found.include, _FOLDER_MARK in regex.groupindex)


class Patterns:
    """Patterns in their order; of those that match a path the last one counts.

    Paths are relative to one folder, with `/` and without one at the end; in lower case where the
    patterns were compiled with `ignore_case`.
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = tuple(patterns)
        self._folders: dict[str, Pattern | None] = {}

    @classmethod
    def of(cls, lines: Iterable[str], *, ignore_case: bool) -> Patterns:
        """The patterns of a whole file, lines without one left out."""
        found = (compiled(line, ignore_case=ignore_case) for line in lines)
        return cls(pattern for pattern in found if pattern is not None)

    def match(self, path: str, *, is_folder: bool) -> Pattern | None:
        """The last pattern that matches `path` itself, not merely a folder above it."""
        for pattern in reversed(self._patterns):
            if _matches(pattern, path, is_folder=is_folder):
                return pattern
        return None

    def decisive(self, path: str) -> Pattern | None:
        """The pattern that excludes a file or a folder above it, else the last that takes one
        of them back."""
        if not self._patterns:
            return None
        above = self._decisive_above(path)
        if above is not None and above.ignores:
            return above
        return self.match(path, is_folder=False) or above

    def _decisive_above(self, path: str) -> Pattern | None:
        """As `decisive`, for the folder that `path` is in; remembered."""
        folder = path.rpartition("/")[0]
        if not folder:
            return None
        if folder not in self._folders:
            if len(self._folders) >= _REMEMBERED_FOLDERS:
                self._folders.clear()
            above = self._decisive_above(folder)
            if above is None or not above.ignores:
                above = self.match(folder, is_folder=True) or above
            self._folders[folder] = above
        return self._folders[folder]


def _matches(pattern: Pattern, path: str, *, is_folder: bool) -> bool:
    regex = pattern.regex
    if not is_folder:
        found = regex.search(path)
        return found is not None and not (pattern.marks and found[_FOLDER_MARK] is not None)
    for found in regex.finditer(path + "/"):
        if not pattern.marks or found[_FOLDER_MARK] is None:
            # `a/**` is everything in `a`, not `a` itself; the slash alone must not decide.
            return regex.search(path) is not None
        if found.end(_FOLDER_MARK) == len(path) + 1:
            return True
    return False
