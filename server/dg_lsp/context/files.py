"""The source files of a workspace by the ends of their paths."""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Iterable

from dg_lsp.languages import language_of
from dg_lsp.syntax.grammars import LANGUAGES

_SOURCES = LANGUAGES - {"html", "json"}
MOST_FILES = 200_000
"""What is found behind them is left out: about 20 MB of paths."""
MOST_ANSWERS = 4_096
_COMMON = frozenset({"__init__.py", "index.js", "index.ts", "index.tsx", "mod.rs", "lib.rs"})
"""Names that say nothing without their folder's."""


class Files:
    """Folders and the names of the source files in them."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._by_end: dict[str, list[str]] = {}
        """The folders that have a file of a name."""
        self._by_base: dict[str, list[str]] = {}
        """Folders by their own names."""
        self._answers: dict[tuple[str, str], list[str]] = {}
        """What was found since the last change, by candidate and folder of the asking file."""
        self.count = 0

    def __contains__(self, path: str) -> bool:
        folder, name = posixpath.split(path)
        return name in self._names.get(folder, ())

    @property
    def is_full(self) -> bool:
        """Whether no more files are taken in."""
        return self.count >= MOST_FILES

    def knows(self, folder: str) -> bool:
        """Whether a folder was looked into."""
        return folder in self._names

    @property
    def folders(self) -> list[str]:
        """All folders, those without a source file too."""
        return list(self._names)

    def add_folder(self, folder: str, names: Iterable[str]) -> None:
        """A folder and all names in it; what is no source file is left out."""
        if folder not in self._names:
            self._names[folder] = set()
            self._by_base.setdefault(posixpath.basename(folder), []).append(folder)
        held = self._names[folder]
        self._answers.clear()
        for name in names:
            if not self.is_full and name not in held and is_source(name):
                name = sys.intern(name)
                held.add(name)
                self.count += 1
                self._by_end.setdefault(_end_of(folder, name), []).append(folder)

    def remove(self, path: str) -> None:
        """A file is gone, or a folder with all that was in it."""
        self._answers.clear()
        folder, name = posixpath.split(path)
        if name in self._names.get(folder, ()):
            self._names[folder].discard(name)
            self._forget(folder, name)
        if path in self._names:
            gone = [f for f in self._names if f == path or f.startswith(path + "/")]
            for folder in gone:
                self._by_base[posixpath.basename(folder)].remove(folder)
                for name in self._names.pop(folder):
                    self._forget(folder, name)

    def in_folder(self, folder: str) -> list[str]:
        """The paths of a folder's files, in their order."""
        return [f"{folder}/{name}" for name in sorted(self._names.get(folder, ()))]

    def find(self, candidate: str, near: str) -> list[str]:
        """The files that a candidate of `modules` means, one or a folder's; none if none is there.

        Of several the one counts that shares the most folders with the file `near`.
        """
        if candidate.startswith("/"):
            return [candidate] if candidate in self else []
        key = candidate, posixpath.dirname(near)
        if key not in self._answers:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            self._answers[key] = self._find(candidate, near)
        return self._answers[key]

    def _find(self, candidate: str, near: str) -> list[str]:
        """As `find`, for the end of a path."""
        if candidate.endswith("/"):
            based = self._by_base.get(posixpath.basename(candidate[:-1]), ())
            ends = [f for f in based if f"{f}/".endswith(f"/{candidate}") and self._names[f]]
            return self.in_folder(_nearest(ends, near)) if ends else []
        folder, name = posixpath.split(candidate)
        named = self._by_end.get(_end_of(folder, name), ())
        found = [f"{f}/{name}" for f in named if f"{f}/".endswith(f"/{folder}/" if folder else "/")]
        return [_nearest(found, near)] if found else []

    def _forget(self, folder: str, name: str) -> None:
        self.count -= 1
        end = _end_of(folder, name)
        held = self._by_end[end]
        held.remove(folder)
        if not held:
            del self._by_end[end]


def is_source(name: str) -> bool:
    """Whether a file's name is that of a language whose definitions we find."""
    return language_of(name) in _SOURCES


def _end_of(folder: str, name: str) -> str:
    return f"{posixpath.basename(folder)}/{name}" if name in _COMMON else name


def _nearest(paths: list[str], near: str) -> str:
    def distance(path: str) -> tuple[int, int, str]:
        return -len(os.path.commonpath([path, near])), path.count("/"), path

    return min(paths, key=distance)
