"""Settings as one source gives them: those that can be used, and a sentence for each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dg_lsp.configuration.fields import Field, fields
from dg_lsp.configuration.schema import Configuration
from dg_lsp.privacy.rules import is_glob

SECTION = "dg"
"""The section of the client's configuration that holds our settings."""


class Problem(msgspec.Struct, frozen=True):
    """What is wrong with a source."""

    sentence: str
    key: str = ""
    """The name that it is about, as it is written there."""


class Reading(msgspec.Struct, frozen=True):
    """What one source says."""

    values: dict[str, Any] = {}
    """By the setting's name; what is not named is not set."""
    problems: list[Problem] = []

    @property
    def sentences(self) -> list[str]:
        """What is wrong, for people."""
        return [problem.sentence for problem in self.problems]


def read_settings(given: object) -> Reading:
    """The settings in `given`; one bad setting leaves the others in force.

    `given` may hold them under "dg". Null is what a client sends for what is not set.
    """
    if given is None or given == []:  # an empty table of Lua is an empty list in JSON
        return Reading()
    if not isinstance(given, Mapping):
        return Reading(problems=[Problem(f"The settings must be an object, not {_shown(given)}.")])
    settings = cast("Mapping[str, object]", given)
    inner = settings.get(SECTION)
    if inner is not None:
        return read_settings(inner)
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in settings.items():
        field = fields().get(key)
        if field is None:
            known = ", ".join(fields())
            problems.append(Problem(f'There is no setting "{key}"; known are {known}.', key))
        elif value is None and field.default is None:
            continue
        elif not _fits(field, value):
            sentence = f'The setting "{key}" takes {field.expects}, not {_shown(value)}.'
            problems.append(Problem(sentence, key))
        elif field.is_globs:
            globs = cast("list[str]", value)
            # The others still protect their files.
            values[key] = [glob for glob in globs if is_glob(glob)]
            problems += [
                Problem(f'The setting "{key}" takes {field.expects}; {_shown(g)} is no glob.', key)
                for g in globs
                if not is_glob(g)
            ]
        else:
            values[key] = value
    return Reading(values, problems)


def combined(*sources: Mapping[str, Any]) -> Configuration:
    """The configuration that sources give together, the strongest last.

    Lists are joined: what one source protects, no other opens by saying nothing.
    """
    values: dict[str, Any] = {}
    for source in sources:
        for key, value in source.items():
            adds_up = fields()[key].adds_up
            values[key] = [*values.get(key, []), *value] if adds_up else value
    return msgspec.convert(values, Configuration)


def ours_in(pushed: object) -> object:
    """Our settings in what a client pushes, which may be everybody's; None when there are none."""
    if not isinstance(pushed, Mapping):
        return None
    settings = cast("Mapping[str, object]", pushed)
    if SECTION in settings:
        return settings[SECTION]
    return settings if settings.keys() & fields().keys() else None


def _fits(field: Field, value: object) -> bool:
    try:
        msgspec.convert({field.name: value}, Configuration)
    except msgspec.ValidationError:
        return False
    return True


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else text[:37] + "..."
