"""Which files may be completed in and which may be read as context, and the rule that says no.

The user's globs decide first and may take back what the other lists exclude; then the built-in
list of secret files, which nothing in a repository can open; then the ignore files.
"""

from __future__ import annotations

import enum
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from dg_lsp.privacy.defaults import SECRET_PATTERNS
from dg_lsp.privacy.ignore_files import CHECK_SECONDS, Folder, Match, Workspace
from dg_lsp.privacy.patterns import Pattern, Patterns, compiled

SECRETS = "the built-in list of secret files"
LINK = "a link out of the workspace"
UNNAMEABLE = "no path"
_MAX_PATH = 4096
"""Characters; no system opens a longer one."""
_MAX_DEPTH = 256
"""Folders above a file; every one of them may hold ignore files."""
_MAX_REMEMBERED = 65_536


class Use(enum.Enum):
    """What a file would be read for; the value is the setting that lists files never read so."""

    COMPLETE = "exclude"
    CONTEXT = "excludeFromContext"


class PrivacySettings(msgspec.Struct, frozen=True):
    """The user's own globs, in the syntax of an ignore file; the last that matches counts.

    They are relative to the workspace root, from the root of the disk outside of every workspace;
    one that starts with `~/` means the home folder. `!` takes files back from every list.
    """

    exclude: list[str] = []
    """Never complete in these."""
    exclude_from_context: list[str] = []
    """Never use these as context."""
    files: dict[str, dict[str, str]] = {}
    """By the setting's name, the file that a glob stands in where it is not from the editor."""


class Decision(msgspec.Struct, frozen=True):
    """Whether a file may be read, and why not."""

    allowed: bool
    rule: str = ""
    """The pattern that excludes it, as it was written."""
    source: str = ""
    """Where that pattern stands: a path, a setting or one of ours."""
    reason: str = ""
    """One sentence for people; empty when the file is allowed."""


ALLOWED = Decision(True)


class _Remembered:
    """A decision and what it depends on."""

    __slots__ = ("checked", "decision", "spellings", "states")

    def __init__(
        self,
        decision: Decision,
        spellings: list[str],
        states: list[Folder | None],
        checked: float,
    ) -> None:
        self.decision = decision
        self.spellings = spellings
        self.states = states
        self.checked = checked


class Rules:
    """Decides about paths; a decision is kept until an ignore file or a link changes."""

    def __init__(
        self,
        roots: Sequence[str],
        settings: PrivacySettings | None = None,
        *,
        of_roots: Mapping[str, PrivacySettings] | None = None,
        ignore_case: bool = sys.platform in ("darwin", "win32"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`settings` count outside of `roots`, and in those that `of_roots` does not name."""
        self._ignore_case = ignore_case
        self._clock = clock
        spelled = [spelling for root in roots for spelling in _spellings(root)]
        self._workspaces = [
            Workspace(root, ignore_case=ignore_case, clock=clock)
            for root in sorted(set(spelled), key=len, reverse=True)
        ]
        self._user = self._both(settings or PrivacySettings())
        self._files = (settings or PrivacySettings()).files
        self._files_in = {
            spelling: own.files
            for root, own in (of_roots or {}).items()
            for spelling in _spellings(root)
        }
        self._user_in = {
            spelling: self._both(own)
            for root, own in (of_roots or {}).items()
            for spelling in _spellings(root)
        }
        self._remembered: dict[tuple[str, Use], _Remembered] = {}
        self._folders: dict[str, tuple[float, list[str]]] = {}

    def decide(self, path: str, use: Use) -> Decision:
        """Whether the file at `path` may be read for a use, by what the disk says now.

        What ignore files and links say may be CHECK_SECONDS old. A path that is not absolute, as
        of a document without a file, is judged by its name.
        """
        known = self._remembered.get((path, use))
        now = self._clock()
        if known is not None and now - known.checked < CHECK_SECONDS:
            return known.decision
        try:
            spellings = self._spellings(path, now) if os.path.isabs(path) else ["/" + path]
        except (OSError, ValueError):
            spellings = []
        if not spellings or len(path) > _MAX_PATH or path.count("/") > _MAX_DEPTH:
            return Decision(False, "", UNNAMEABLE, f"{_quoted(path[:80])} is not a path.")
        homes = [self._workspace_of(spelling) for spelling in spellings]
        states = [
            None if home is None else home.folder(spelling.rpartition("/")[0])
            for home, spelling in zip(homes, spellings, strict=True)
        ]
        if known is not None and known.spellings == spellings and known.states == states:
            known.checked = now
            return known.decision
        decision = self._decide_now(spellings, homes, use)
        if len(self._remembered) >= _MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered[path, use] = _Remembered(decision, spellings, states, now)
        return decision

    def may_enter(self, folder: str) -> bool:
        """Whether a folder of a workspace may hold files that are context.

        False where ignore files or the list of secret files exclude all that is in it. What the
        user's globs take back from there is not found by looking; each file is decided by itself.
        """
        home = self._workspace_of(f"{folder}/")
        secret = SECRET_PATTERNS.match(folder[1:].lower(), is_folder=True)
        if home is None or (secret is not None and secret.ignores):
            return False
        return home.folder(folder).excluded is None

    def _spellings(self, path: str, now: float) -> list[str]:
        """As the function, with where folders really are remembered for CHECK_SECONDS."""
        folder, name = os.path.split(path)
        if "\0" in path or name in ("", ".", "..") or os.path.islink(path):
            return _spellings(path)
        checked, spelled = self._folders.get(folder, (-math.inf, []))
        if now - checked >= CHECK_SECONDS:
            if len(self._folders) >= _MAX_REMEMBERED:
                self._folders.clear()
            spelled = _spellings(folder)
            self._folders[folder] = now, spelled
        return [f"{spelling}/{name}" for spelling in spelled]

    def _decide_now(
        self, spellings: list[str], homes: list[Workspace | None], use: Use
    ) -> Decision:
        shown = [_shown(s, home) for s, home in zip(spellings, homes, strict=True)]
        for index, (spelling, home) in enumerate(zip(spellings, homes, strict=True)):
            found = self._excluded(spelling, home, use)
            if found is not None:
                what = shown[0] if index == 0 else f"{shown[0]} links to {shown[index]}, which"
                reason = _sentence(what, found, home, use, self._file_of(found, home, use))
                return Decision(False, found.rule, found.source, reason)
        if homes[0] is not None and homes[-1] is None:
            reason = f"{shown[0]} links to a place outside of the workspace."
            return Decision(False, "", LINK, reason)
        return ALLOWED

    def _excluded(self, path: str, home: Workspace | None, use: Use) -> Match | None:
        """The rule against one spelling of a path."""
        by_user = self._user_match(path, home, use)
        if by_user is not None:
            return Match(by_user.text, use.value) if by_user.ignores else None
        secret = SECRET_PATTERNS.decisive(path[1:].lower())
        if secret is not None and secret.ignores:
            return Match(secret.text, SECRETS)
        return None if home is None else home.match(path)

    def _user_match(self, path: str, home: Workspace | None, use: Use) -> Pattern | None:
        user = self._user if home is None else self._user_in.get(home.root, self._user)
        from_disk, from_root = user[use]
        compared = path.lower() if self._ignore_case else path
        start = 1 if home is None else len(home.root) + 1
        return from_disk.decisive(compared[1:]) or from_root.decisive(compared[start:])

    def _file_of(self, found: Match, home: Workspace | None, use: Use) -> str:
        """The settings file that a user's glob stands in; empty where none does."""
        files = self._files if home is None else self._files_in.get(home.root, self._files)
        return files.get(use.value, {}).get(found.rule, "")

    def _workspace_of(self, path: str) -> Workspace | None:
        """The innermost workspace that holds a path."""
        compared = path.lower() if self._ignore_case else path
        for workspace in self._workspaces:
            root = workspace.root.lower() if self._ignore_case else workspace.root
            if compared.startswith(root + "/"):
                return workspace
        return None

    def _both(self, settings: PrivacySettings) -> dict[Use, tuple[Patterns, Patterns]]:
        return {
            Use.COMPLETE: self._compiled(settings.exclude),
            Use.CONTEXT: self._compiled(settings.exclude_from_context),
        }

    def _compiled(self, globs: Sequence[str]) -> tuple[Patterns, Patterns]:
        """Patterns from the root of the disk, and patterns from a workspace's root."""
        from_disk: list[Pattern] = []
        from_root: list[Pattern] = []
        for glob in globs:
            bare = glob.removeprefix("!")
            at_home = bare.startswith("~/")
            mark = "!" if bare != glob else ""
            line = mark + _slashed(os.path.expanduser(bare)) if at_home else glob
            found = compiled(line, ignore_case=self._ignore_case)
            if found is not None:
                kept = msgspec.structs.replace(found, text=glob)
                (from_disk if at_home else from_root).append(kept)
        return Patterns(from_disk), Patterns(from_root)


def is_glob(text: str) -> bool:
    """Whether a line of an ignore file excludes or takes back anything."""
    return compiled(text, ignore_case=False) is not None


def _spellings(path: str) -> list[str]:
    """The path as named and, where it differs, with every link followed."""
    named, real = _slashed(os.path.abspath(path)), _slashed(os.path.realpath(path))
    return [named] if named == real else [named, real]


def _slashed(path: str) -> str:
    path = path.replace("\\", "/") if os.sep == "\\" else path
    return path.rstrip("/")


def _shown(path: str, home: Workspace | None) -> str:
    return _quoted(path[len(home.root) + 1 :] if home is not None else path)


def _below(path: str, home: Workspace | None) -> str:
    """A path below a workspace, else below the user's folder, else the path."""
    if home is not None and path.startswith(home.root + "/"):
        return path[len(home.root) + 1 :]
    own = _slashed(os.path.expanduser("~")) + "/"
    return "~/" + path[len(own) :] if path.startswith(own) else path


def _quoted(name: str) -> str:
    return f"`{''.join(c if c.isprintable() else '?' for c in name)}`"


def _sentence(what: str, found: Match, home: Workspace | None, use: Use, file: str) -> str:
    if found.source == SECRETS:
        return f"{what} is excluded by {SECRETS}."
    if found.source == use.value:
        given = f" of {_quoted(_below(file, home))}" if file else ""
        return f"{what} is excluded by `{found.rule}` in the setting {use.value}{given}."
    source = _below(found.source, home)
    if not found.rule:
        return f"{what} is excluded because {_quoted(source)} cannot be read."
    return f"{what} is excluded by `{found.rule}` in {_quoted(source)}."
