"""The settings in force: every source's, and what a workspace's file may not say."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dg_lsp.configuration.fields import fields
from dg_lsp.configuration.files import WORKSPACE_FILE, FileReading, read_file, user_file
from dg_lsp.configuration.reading import Problem, Reading, combined, read_settings
from dg_lsp.configuration.schema import GLOBS, Configuration, Scope
from dg_lsp.privacy.rules import PrivacySettings
from dg_lsp.uris import path_of


class _Source:
    """A file, and the last that could be read of it."""

    def __init__(self, path: Path, within: Path | None = None) -> None:
        self.path = path
        self._within = within
        """The workspace folder that the file may not lead out of."""
        self.found = FileReading()

    def reload(self) -> None:
        """Read the file again; what cannot be read any more stays what it was."""
        before, now = self.found, read_file(self.path, self._within)
        if now.whole:
            wrong = {problem.key for problem in now.reading.problems}
            kept = {k: v for k, v in before.reading.values.items() if k in wrong}
            values = {**kept, **now.reading.values}
            self.found = msgspec.structs.replace(now, reading=Reading(values, now.reading.problems))
        else:
            old = " What it said before stays in force." if before.reading.values else ""
            problems = [Problem(sentence + old) for sentence in now.reading.sentences]
            self.found = msgspec.structs.replace(
                before, reading=Reading(before.reading.values, problems)
            )

    def allowed(
        self, users: Mapping[str, Any], *, trusted: bool
    ) -> tuple[dict[str, Any], list[str]]:
        """What a workspace's file may say, and a sentence for all else that it says.

        `users` are the values that the user has set.
        """
        values: dict[str, Any] = {}
        problems: list[str] = []
        for key, value in self.found.reading.values.items():
            field, where = fields()[key], f"{self.path}:{self.found.lines.get(key, 1)}: "
            if field.scope is Scope.USER:
                problems.append(
                    f'{where}The setting "{key}" counts only in {user_file()} or in the editor.'
                )
            elif trusted:
                values[key] = value
            elif field.scope is Scope.TRUSTED:
                problems.append(
                    f'{where}The setting "{key}" counts only in folders that "trustedFolders" '
                    f"in {user_file()} names."
                )
            elif field.is_globs:
                values[key] = [glob for glob in value if not glob.startswith("!")]
                problems += [
                    f'{where}"{glob}" would take files back, which counts only in folders that '
                    f'"trustedFolders" in {user_file()} names.'
                    for glob in value
                    if glob.startswith("!")
                ]
            elif field.is_within(value, users.get(key, field.default)):
                values[key] = value
            else:
                problems.append(
                    f'{where}The setting "{key}" may only be {field.limit} here; more counts only '
                    f'in folders that "trustedFolders" in {user_file()} names.'
                )
        return values, problems


class Settings:
    """Every source's settings, and what follows from them for each workspace folder.

    Settings for a folder count for the documents below it. There is one engine and one log, so
    `Scope.TRUSTED` is for the whole server: the first folder that says something counts.
    """

    def __init__(self) -> None:
        self._client = Reading()
        self._user = _Source(user_file())
        self._folders: dict[str, _Source] = {}
        self.problems: list[str] = []
        """What is wrong with any of them, a sentence each."""
        self.server = Configuration()
        """What counts for the server, and for documents outside of every folder."""
        self._of_folders: dict[str, Configuration] = {}

    @property
    def files(self) -> list[Path]:
        """The files that count, whether they exist or not."""
        return [source.path for source in (self._user, *self._folders.values())]

    @property
    def state(self) -> tuple[Configuration, dict[str, Configuration], list[str]]:
        """All that follows from them, to be compared."""
        return self.server, self._of_folders, self.problems

    def of(self, root: str | None) -> Configuration:
        """What counts in a workspace folder, by its URI; outside of all, None."""
        return self._of_folders.get(root or "", self.server)

    def privacy(self, root: str | None) -> PrivacySettings:
        """What may be read in a workspace folder, by its URI, and which files say so."""
        known = self.of(root).privacy
        files: dict[str, dict[str, str]] = {}
        source = self._folders.get(root or "")
        for key in GLOBS:
            held = files.setdefault(key, {})
            for one in (self._user, source) if source else (self._user,):
                globs = one.found.reading.values.get(key, [])
                held.update(dict.fromkeys(globs, str(one.path)))
            for glob in self._client.values.get(key, []):
                held.pop(glob, None)
        return msgspec.structs.replace(known, files=files)

    def set_client(self, given: object) -> None:
        """The editor's settings, in place of those that it gave before."""
        self._client = read_settings(given)
        self._combine()

    def set_folders(self, folders: Sequence[str]) -> None:
        """The workspace folders, by URI; only those on disk have a file."""
        self._folders = {
            folder: self._folders.get(folder) or _of_folder(Path(path_of(folder)))
            for folder in folders
            if folder.lower().startswith("file:")
        }
        self.reload()

    def reload(self) -> None:
        """Read every file again."""
        self._user.reload()
        for source in self._folders.values():
            source.reload()
        self._combine()

    def _combine(self) -> None:
        user, client = self._user.found.reading, self._client
        trusted = combined(user.values, client.values).trusted_folders
        problems = [*client.sentences, *user.sentences]
        of_server: dict[str, Any] = {}
        of_folders: dict[str, dict[str, Any]] = {}
        for folder, source in self._folders.items():
            is_trusted = _is_below(source.path.parent, trusted)
            values, refused = source.allowed({**user.values, **client.values}, trusted=is_trusted)
            problems += [*source.found.reading.sentences, *refused]
            of_server = {**_for_server(values), **of_server}
            of_folders[folder] = values
        self.problems = problems
        self.server = combined(user.values, of_server, client.values)
        self._of_folders = {
            folder: combined(user.values, {**values, **of_server}, client.values)
            for folder, values in of_folders.items()
        }


def _of_folder(folder: Path) -> _Source:
    return _Source(folder / WORKSPACE_FILE, folder)


def _for_server(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if fields()[key].scope is Scope.TRUSTED}


def _is_below(folder: Path, trusted: Sequence[str]) -> bool:
    """Whether a folder is one of those or stands below one, wherever links lead."""
    real = Path(os.path.realpath(folder))
    return any(
        real.is_relative_to(os.path.realpath(os.path.expanduser(name)))
        for name in trusted
        if name.strip()
    )
