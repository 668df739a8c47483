"""What users may set, and one sentence for each setting that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

import msgspec

from dg_lsp.privacy.rules import PrivacySettings, is_glob
from dg_lsp.prompts.settings import HoleSettings, InfillSettings

SECTION = "dg"
"""The section of the client's configuration that holds our settings."""

LogLevel = Literal["error", "warning", "info", "debug", "trace"]
Milliseconds = Annotated[int, msgspec.Meta(ge=50, le=600_000)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=256)]


class Configuration(msgspec.Struct, frozen=True, rename="camel"):
    """The settings in force."""

    model: str | None = None
    """Name or folder of the model; without it DG_LSP_MODEL, then dg-tiny."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    """Processor threads of the engine; without it the engine decides."""
    max_line_tokens: Tokens | None = None
    """Longest completion within a line."""
    max_block_tokens: Tokens | None = None
    """Longest completion of several lines."""
    automatic_deadline_ms: Milliseconds = 1500
    """How long a completion may take that was asked for while typing."""
    invoked_deadline_ms: Milliseconds = 5000
    """How long a completion may take that the user asked for."""
    edit_deadline_ms: Milliseconds = 30_000
    """How long an instructed edit may take."""
    prefetch: bool = True
    """Whether what comes behind a suggestion is prepared while it is shown."""
    log_level: LogLevel = "warning"
    """What is written to standard error; only "trace" may hold what documents hold."""
    exclude: list[str] = []
    """Globs of files never to complete in; `!` takes files back, even from the built-in list."""
    exclude_from_context: list[str] = []
    """Globs of files never to use as context for others."""

    @property
    def privacy(self) -> PrivacySettings:
        """What the user says about files."""
        return PrivacySettings(self.exclude, self.exclude_from_context)

    def infill(self, defaults: InfillSettings) -> InfillSettings:
        """A prompt format's settings, narrowed to what the user wants."""
        return msgspec.structs.replace(
            defaults,
            line=_narrowed(defaults.line, self.max_line_tokens),
            block=_narrowed(defaults.block, self.max_block_tokens),
        )


_GLOBS = 'a list of globs such as ["*.md", "docs/"]'
_EXPECTED = {
    "model": "the name or the folder of a model",
    "threads": "a whole number from 1 to 1024",
    "maxLineTokens": "a whole number from 1 to 256",
    "maxBlockTokens": "a whole number from 1 to 256",
    "automaticDeadlineMs": "milliseconds from 50 to 600000",
    "invokedDeadlineMs": "milliseconds from 50 to 600000",
    "editDeadlineMs": "milliseconds from 50 to 600000",
    "prefetch": "true or false",
    "logLevel": '"error", "warning", "info", "debug" or "trace"',
    "exclude": _GLOBS,
    "excludeFromContext": _GLOBS,
}


def read_configuration(given: object) -> tuple[Configuration, list[str]]:
    """The settings in `given` and a sentence for each that was not understood.

    One bad setting leaves the others in force. `given` may hold them under "dg".
    """
    if given is None or given == []:  # an empty table of Lua is an empty list in JSON
        return Configuration(), []
    if not isinstance(given, Mapping):
        return Configuration(), [f"The settings must be an object, not {_shown(given)}."]
    settings = cast("Mapping[str, object]", given)
    inner = settings.get(SECTION)
    if inner is not None:
        return read_configuration(inner)
    good: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in settings.items():
        if key not in _EXPECTED:
            known = ", ".join(_EXPECTED)
            problems.append(f'There is no setting "{key}"; known are {known}.')
            continue
        try:
            msgspec.convert({key: value}, Configuration)
        except msgspec.ValidationError:
            problems.append(f'The setting "{key}" takes {_EXPECTED[key]}, not {_shown(value)}.')
        else:
            good[key] = value
            if _EXPECTED[key] is _GLOBS:
                globs = cast("list[str]", value)
                # The others still protect their files.
                good[key] = [glob for glob in globs if is_glob(glob)]
                problems += [
                    f'The setting "{key}" takes {_GLOBS}; {_shown(glob)} is no glob.'
                    for glob in globs
                    if not is_glob(glob)
                ]
    return msgspec.convert(good, Configuration), problems


def ours_in(pushed: object) -> object:
    """Our settings in what a client pushes, which may be everybody's; None when there are none."""
    if not isinstance(pushed, Mapping):
        return None
    settings = cast("Mapping[str, object]", pushed)
    if SECTION in settings:
        return settings[SECTION]
    return settings if settings.keys() & _EXPECTED.keys() else None


def _narrowed(hole: HoleSettings, tokens: int | None) -> HoleSettings:
    if tokens is None:
        return hole
    if not hole.widths:
        return msgspec.structs.replace(hole, canvas=min(hole.canvas, tokens))
    widths = [width for width in hole.widths if width <= tokens]
    return msgspec.structs.replace(hole, widths=widths or [tokens])


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else text[:37] + "..."
