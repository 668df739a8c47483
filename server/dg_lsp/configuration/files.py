"""Settings files: TOML with the settings' own names, each problem with its file and line."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from dg_lsp.configuration.reading import Problem, Reading, read_settings

WORKSPACE_FILE = ".dg-lsp.toml"
MAX_BYTES = 256_000
"""A settings file beyond this was not written by a person."""

_AT_LINE = re.compile(r" \(at line (\d+), column (\d+)\)$")


class FileReading(msgspec.Struct, frozen=True):
    """What a file says."""

    reading: Reading = Reading()
    whole: bool = True
    """Whether the file could be read at all; one that does not exist is read."""
    lines: dict[str, int] = {}
    """The line, from 1, in which each setting is given."""


def user_file() -> Path:
    """`dg-lsp/config.toml` in the user's folder for configuration (XDG Base Directory)."""
    named = os.environ.get("XDG_CONFIG_HOME", "")
    # The specification has relative paths ignored.
    home = Path(named) if os.path.isabs(named) else Path.home() / ".config"
    return home / "dg-lsp" / "config.toml"


def read_file(path: Path, within: Path | None = None) -> FileReading:
    """The settings in a file; its problems name the file and the line.

    A file that is a link out of the folder `within` is not read: what is wrong with it is quoted.
    """
    if within is not None and not _stays_in(path, within):
        return _broken(f"{path} is a link out of its folder; put a file there.")
    try:
        text = _text_of(path)
    except FileNotFoundError:
        return FileReading()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return _broken(f"{path} cannot be read ({why}).")
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _AT_LINE.search(str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        what = str(error)[: place.start()] if place else str(error).partition(" (")[0]
        column = f", column {place[2]}" if place else ""
        return _broken(f"{path}:{line}{column}: This is not TOML: {what}.")
    found = read_settings(given)
    lines = _lines_of(text)
    problems = [
        msgspec.structs.replace(p, sentence=f"{path}:{lines.get(p.key, 1)}: {p.sentence}")
        for p in found.problems
    ]
    return FileReading(Reading(found.values, problems), lines=lines)


def _broken(sentence: str) -> FileReading:
    return FileReading(Reading(problems=[Problem(sentence)]), whole=False)


def _stays_in(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _text_of(path: Path) -> str:
    with open(path, "rb", opener=_opened) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a file")
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None


def _opened(path: str, flags: int) -> int:
    # Not to wait for a pipe, which a workspace may hold under this name.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _lines_of(text: str) -> dict[str, int]:
    """Where each name of the top level stands, in a text that is TOML.

    The standard reader tells no places, so it is asked where each statement ends: lines are added
    until they are TOML by themselves.
    """
    found: dict[str, int] = {}
    lines = [line + "\n" for line in text.split("\n")]
    first = 0
    for last in range(len(lines)):
        statement = "".join(lines[first : last + 1])
        try:
            names: dict[str, Any] = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        for name in names:
            found.setdefault(name, first + 1)
        if statement.lstrip().startswith("["):
            break  # what follows belongs to a table, and we have none
        first = last + 1
    return found
