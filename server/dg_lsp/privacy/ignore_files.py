"""The ignore files that hold for a path: read when needed, looked at again once a second."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

import msgspec

from dg_lsp.privacy.patterns import Patterns

NAMES = (".gitignore", ".ignore", ".dgignore")
"""In one folder a later name has the last word."""
CHECK_SECONDS = 1.0
"""How long a change of an ignore file may go unnoticed."""
MAX_BYTES = 1_000_000
"""An ignore file beyond this is no list that a person wrote."""
_MAX_FOLDERS = 65_536

_Signature = tuple[int, int, int] | None
"""Change time in ns, size and inode of a file; None when there is none."""


class IgnoreFile(msgspec.Struct, frozen=True, eq=False):
    """One ignore file's patterns and the folder that they are relative to."""

    source: str
    folder: str
    """Absolute with `/`, without one at the end."""
    patterns: Patterns
    unreadable: bool = False
    """It is there and cannot be read: what it protects is unknown, so all below is left alone."""


class Match(msgspec.Struct, frozen=True):
    """The rule that excludes a path; an empty rule means that `source` cannot be read."""

    rule: str
    source: str


class Folder:
    """What holds in one folder; a new object whenever that changes."""

    __slots__ = ("checked", "excluded", "files", "parent", "signatures")

    def __init__(
        self,
        parent: Folder | None,
        files: tuple[IgnoreFile, ...],
        excluded: Match | None,
        signatures: tuple[tuple[str, _Signature], ...],
        checked: float,
    ) -> None:
        self.parent = parent
        self.files = files
        """From the top of the repository down to this folder; the last word comes last."""
        self.excluded = excluded
        """Why nothing in this folder may be read."""
        self.signatures = signatures
        self.checked = checked


class Workspace:
    """One root with its ignore files.

    Files of the repository above the root count, as they do for Git. The root itself and what is
    above it are not judged: somebody opened it, even if the repository ignores it.
    """

    def __init__(self, root: str, *, ignore_case: bool, clock: Callable[[], float]) -> None:
        self.root = root
        self._top = _repository_of(root)
        self._ignore_case = ignore_case
        self._clock = clock
        self._folders: dict[str, Folder] = {}

    def folder(self, path: str) -> Folder:
        """The state of a folder in this workspace; the same object while nothing changed."""
        parent = self.folder(path.rpartition("/")[0]) if len(path) > len(self._top) else None
        known = self._folders.get(path)
        now = self._clock()
        if known is not None and known.parent is parent:
            if now - known.checked < CHECK_SECONDS:
                return known
            if known.signatures == _signatures(path):
                known.checked = now
                return known
        if len(self._folders) >= _MAX_FOLDERS:
            self._folders.clear()
        found = self._folders[path] = self._read(path, parent, now)
        return found

    def match(self, path: str, *, is_folder: bool = False) -> Match | None:
        """The rule that excludes a path below the root, None when none does."""
        parent = self.folder(path.rpartition("/")[0])
        return parent.excluded or self._match_in(parent.files, path, is_folder=is_folder)

    def _read(self, path: str, parent: Folder | None, now: float) -> Folder:
        excluded: Match | None = None
        if parent is not None:
            excluded = parent.excluded
            if excluded is None and len(path) > len(self.root):
                excluded = self._match_in(parent.files, path, is_folder=True)
        above = parent.files if parent is not None else ()
        signatures = _signatures(path)
        own: list[IgnoreFile] = []
        for source, signature in signatures:
            if excluded is None and signature is not None:
                own.append(_read_file(source, path, ignore_case=self._ignore_case))
        broken = next((file.source for file in own if file.unreadable), None)
        if broken is not None and excluded is None:
            excluded = Match("", broken)
        return Folder(parent, (*above, *own), excluded, signatures, now)

    def _match_in(
        self, files: tuple[IgnoreFile, ...], path: str, *, is_folder: bool
    ) -> Match | None:
        compared = path.lower() if self._ignore_case else path
        for file in reversed(files):
            relative = compared[len(file.folder) + 1 :]
            found = file.patterns.match(relative, is_folder=is_folder)
            if found is not None:
                return Match(found.text, file.source) if found.ignores else None
        return None


def _repository_of(root: str) -> str:
    """The nearest folder from `root` upwards that is a Git checkout, else `root`."""
    here = root
    while here:
        if os.path.lexists(here + "/.git"):
            return here
        here = here.rpartition("/")[0]
    return root


def _signatures(folder: str) -> tuple[tuple[str, _Signature], ...]:
    """The ignore files of a folder that may exist, the least important first."""
    sources = [f"{folder}/{name}" for name in NAMES]
    private = _exclude_file(folder + "/.git")
    if private is not None:
        sources.insert(0, private)
    return tuple((source, _signature(source)) for source in sources)


def _signature(path: str) -> _Signature:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    # Reading a pipe would wait for ever; Git takes regular files only, too.
    return (found.st_mtime_ns, found.st_size, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _exclude_file(git: str) -> str | None:
    """`info/exclude` of a checkout; in a worktree and a submodule `.git` is a file that points."""
    try:
        mode = os.stat(git).st_mode
        if stat.S_ISDIR(mode):
            return git + "/info/exclude"
        if not stat.S_ISREG(mode):
            return None
        with open(git, encoding="utf-8") as file:
            pointer = file.read(4096).strip()
    except (OSError, ValueError):
        return None
    if not pointer.startswith("gitdir:"):
        return None
    home = os.path.join(os.path.dirname(git), pointer.removeprefix("gitdir:").strip())
    try:
        with open(os.path.join(home, "commondir"), encoding="utf-8") as file:
            home = os.path.join(home, file.read(4096).strip())
    except (OSError, ValueError):
        pass  # a submodule has none
    return os.path.normpath(home).replace(os.sep, "/") + "/info/exclude"


def _read_file(source: str, folder: str, *, ignore_case: bool) -> IgnoreFile:
    try:
        with open(source, "rb") as file:
            raw = file.read(MAX_BYTES)
    except OSError:
        return IgnoreFile(source, folder, Patterns(()), unreadable=True)
    text = raw.decode("utf-8-sig", "surrogateescape")
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return IgnoreFile(source, folder, Patterns.of(lines, ignore_case=ignore_case))
