"""What users may set: the one place from which checks, documentation and editors' forms follow."""

from __future__ import annotations

import enum
from typing import Annotated, Literal

import msgspec
from dg_engine.choice import EngineChoice, EngineKind

from dg_lsp.privacy.rules import PrivacySettings
from dg_lsp.prompts.settings import HoleSettings, InfillSettings


class Scope(enum.StrEnum):
    """Where a setting may stand beside the user's own file and the editor."""

    FOLDER = "folder"
    """In the file of any workspace folder, for the documents below it."""
    TRUSTED = "trusted"
    """In the file of a folder that the user trusts, for the whole server."""
    USER = "user"
    """Nowhere else."""


class Limit(enum.StrEnum):
    """What the file of a folder that nobody trusts may do to a setting."""

    NONE = ""
    """Anything that the scope allows."""
    LOWER = "lowered"
    RAISE = "raised"
    OFF = "switched off"


def _setting(
    text: str,
    *,
    scope: Scope = Scope.FOLDER,
    limit: Limit = Limit.NONE,
    expects: str = "",
    unset: str = "",
) -> msgspec.Meta:
    """What people read of a setting.

    `expects` says what it takes where its type does not, `unset` what counts in place of null.
    """
    return msgspec.Meta(
        description=text,
        extra={"scope": scope, "limit": limit, "expects": expects, "unset": unset},
    )


LogLevel = Literal["error", "warning", "info", "debug", "trace"]
Milliseconds = Annotated[int, msgspec.Meta(ge=50, le=600_000)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=86_400)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=256)]
_GLOBS = 'a list of globs such as ["*.md", "docs/"]'


class Configuration(msgspec.Struct, frozen=True, rename="camel"):
    """The settings in force."""

    model: Annotated[
        str | None,
        _setting(
            "Name or folder of the model; without it DG_LSP_MODEL, then dg-tiny.",
            scope=Scope.TRUSTED,
            expects="the name or the folder of a model",
            unset="`dg-tiny`",
        ),
    ] = None
    threads: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=1024)] | None,
        _setting(
            "Processor threads of the engine.",
            scope=Scope.TRUSTED,
            unset="the engine decides",
        ),
    ] = None
    engine: Annotated[
        Literal["torch", "vllm", "remote"],
        _setting(
            "What runs the model: PyTorch, vLLM on this machine's GPU, or a server elsewhere, "
            "to which your code is then sent.",
            scope=Scope.USER,
            expects='"torch", "vllm" or "remote"',
        ),
    ] = "torch"
    remote_url: Annotated[
        str | None,
        _setting(
            "Address of the server for the engine `remote`: https, or http on this machine.",
            scope=Scope.USER,
            expects='an address such as "https://gpu.example"',
            unset="none",
        ),
    ] = None
    remote_key_file: Annotated[
        str | None,
        _setting(
            "File that holds the key of that server; without it DG_LSP_REMOTE_KEY.",
            scope=Scope.USER,
            expects='the path of a file such as "~/.config/dg-lsp/key"',
            unset="none",
        ),
    ] = None
    share_engine: Annotated[
        bool,
        _setting(
            "Whether all windows of yours share one engine (not for the engine `remote`, and on "
            "Windows, where it was never run, only with DG_LSP_SHARE_ENGINE_ON_WINDOWS=1).",
            scope=Scope.USER,
        ),
    ] = True
    engine_unload_after_s: Annotated[
        Seconds,
        _setting(
            "Seconds after which the shared engine lets go of a model that nobody used.",
            scope=Scope.USER,
        ),
    ] = 1800
    engine_exit_after_s: Annotated[
        Seconds,
        _setting(
            "Seconds after which the shared engine ends once the last window has.",
            scope=Scope.USER,
        ),
    ] = 60
    max_line_tokens: Annotated[
        Tokens | None,
        _setting("Longest completion within a line.", limit=Limit.LOWER, unset="the model's"),
    ] = None
    max_block_tokens: Annotated[
        Tokens | None,
        _setting("Longest completion of several lines.", limit=Limit.LOWER, unset="the model's"),
    ] = None
    automatic_deadline_ms: Annotated[
        Milliseconds, _setting("How long a completion may take while you type.", limit=Limit.LOWER)
    ] = 1500
    invoked_deadline_ms: Annotated[
        Milliseconds,
        _setting("How long a completion may take that you asked for.", limit=Limit.LOWER),
    ] = 5000
    edit_deadline_ms: Annotated[
        Milliseconds, _setting("How long an edit may take.", limit=Limit.LOWER)
    ] = 30_000
    enabled: Annotated[
        bool,
        _setting(
            "Whether suggestions come by themselves; edits are made either way.", limit=Limit.OFF
        ),
    ] = True
    min_confidence: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=1)] | None,
        _setting(
            "How sure the model must be of a suggestion that comes by itself, from 0 to 1 "
            "(geometric mean of its tokens' probabilities); models that do not say are not judged.",
            limit=Limit.RAISE,
            unset="the model's",
        ),
    ] = None
    prefetch: Annotated[
        bool,
        _setting(
            "Whether what comes behind a suggestion is prepared while it is shown.", limit=Limit.OFF
        ),
    ] = True
    next_edit: Annotated[
        bool,
        _setting(
            "Whether an edit at another place of the file is proposed after yours "
            "(`textDocument/copilotInlineEdit`).",
            limit=Limit.OFF,
        ),
    ] = False
    log_level: Annotated[
        LogLevel,
        _setting(
            "What goes to standard error; only `trace` may hold what documents hold.",
            scope=Scope.TRUSTED,
            expects='"error", "warning", "info", "debug" or "trace"',
        ),
    ] = "warning"
    exclude: Annotated[
        list[str],
        _setting(
            "Globs of files never to complete in, in the syntax of `.gitignore`; "
            "`!` takes files back, even from the built-in list.",
            expects=_GLOBS,
        ),
    ] = []
    exclude_from_context: Annotated[
        list[str], _setting("Globs of files never to use as context for others.", expects=_GLOBS)
    ] = []
    trusted_folders: Annotated[
        list[str],
        _setting(
            "Folders whose `.dg-lsp.toml`, and those below, may set everything but this.",
            scope=Scope.USER,
            expects='a list of folders such as ["~/work"]',
        ),
    ] = []

    @property
    def engine_choice(self) -> EngineChoice:
        """Which engine runs the model, and where it is."""
        return EngineChoice(EngineKind(self.engine), self.remote_url, self.remote_key_file)

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
            least_confidence=(
                defaults.least_confidence if self.min_confidence is None else self.min_confidence
            ),
        )


GLOBS = frozenset({"exclude", "excludeFromContext"})
"""Settings whose value is a list of globs."""


def _narrowed(hole: HoleSettings, tokens: int | None) -> HoleSettings:
    if tokens is None:
        return hole
    if not hole.widths:
        return msgspec.structs.replace(hole, canvas=min(hole.canvas, tokens))
    widths = [width for width in hole.widths if width <= tokens]
    return msgspec.structs.replace(hole, widths=widths or [tokens])
