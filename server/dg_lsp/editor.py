"""What the server says to the editor on its own account."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol, cast

import msgspec
from lsprotocol import types

from dg_lsp.previews import Preview
from dg_lsp.status import ModelState, ModelStatus, Report, Status

STATUS_METHOD = "didChangeStatus"
REPORT_METHOD = "dg/status"
PREVIEW_METHOD = "dg/editPreview"
PROGRESS_TITLE = "Loading the model"


class Channel(Protocol):
    """Sends to the editor; requests come back with the editor's result."""

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        ...

    def notify_newest(self, key: str, method: str, params: object) -> None:
        """Send a notification in place of one with this key that the editor has not read yet."""
        ...

    async def ask(self, method: str, params: object) -> object:
        """Send a request and wait for its result; raises EditorError."""
        ...


class EditorError(Exception):
    """The editor refused a request of ours, or is gone."""


class Editor:
    """The editor, with what it said that it can do."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.capabilities = types.ClientCapabilities()
        self.name = ""
        """What it calls itself."""
        self.roots: list[str] = []
        self._shown: set[str] = set()
        self._progress: str | None = None
        self._tokens = itertools.count(1)

    @property
    def versioned_edits(self) -> bool:
        """Whether edits may name the document version that they were made for."""
        workspace = self.capabilities.workspace
        edit = workspace and workspace.workspace_edit
        return bool(edit and edit.document_changes)

    @property
    def applies_edits(self) -> bool:
        """Whether the editor takes workspace/applyEdit."""
        workspace = self.capabilities.workspace
        return bool(workspace and workspace.apply_edit)

    @property
    def gives_configuration(self) -> bool:
        """Whether the editor answers workspace/configuration."""
        workspace = self.capabilities.workspace
        return bool(workspace and workspace.configuration)

    @property
    def shows_progress(self) -> bool:
        """Whether the editor draws progress that we begin."""
        window = self.capabilities.window
        return bool(window and window.work_done_progress)

    def tell_status(self, status: Status) -> None:
        """Send `didChangeStatus`."""
        self._channel.notify(STATUS_METHOD, msgspec.to_builtins(status))

    def tell_report(self, report: Report) -> None:
        """Send `dg/status`; an editor that is slow to read gets only the newest."""
        self._channel.notify_newest(REPORT_METHOD, REPORT_METHOD, msgspec.to_builtins(report))

    def tell_preview(self, preview: Preview) -> None:
        """Send `dg/editPreview`; an editor that is slow to read gets only the newest."""
        self._channel.notify_newest(preview.id, PREVIEW_METHOD, msgspec.to_builtins(preview))

    def warn(self, message: str) -> None:
        """Show a warning, each only once in a session."""
        if message in self._shown:
            return
        self._shown.add(message)
        self._channel.notify(
            types.WINDOW_SHOW_MESSAGE,
            types.ShowMessageParams(type=types.MessageType.Warning, message=message),
        )

    async def configuration(self, section: str) -> object:
        """The editor's settings in a section."""
        result = await self._channel.ask(
            types.WORKSPACE_CONFIGURATION,
            types.ConfigurationParams(items=[types.ConfigurationItem(section=section)]),
        )
        # One item was asked for; lsprotocol reads JSON arrays as tuples.
        items = cast("Sequence[object]", result) if isinstance(result, (list, tuple)) else ()
        return items[0] if items else None

    async def apply(
        self, label: str, uri: str, version: int, edits: Sequence[types.TextEdit]
    ) -> str:
        """Apply edits at once to one version of a document; why not, empty if it was done."""
        if self.versioned_edits:
            document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
            change = types.WorkspaceEdit(
                document_changes=[types.TextDocumentEdit(text_document=document, edits=list(edits))]
            )
        else:
            change = types.WorkspaceEdit(changes={uri: list(edits)})
        try:
            result = await self._channel.ask(
                types.WORKSPACE_APPLY_EDIT,
                types.ApplyWorkspaceEditParams(edit=change, label=label),
            )
        except EditorError as error:
            return f"The editor did not apply the edit ({error})."
        if not isinstance(result, types.ApplyWorkspaceEditResult):
            return "The editor did not say whether it applied the edit; look at the lines."
        if not result.applied:
            why = f" ({result.failure_reason})" if result.failure_reason else ""
            return f"The editor did not apply the edit{why}."
        return ""

    async def follow_loading(self, model: ModelStatus) -> None:
        """Begin progress when the model loads and end it when it no longer does."""
        loading = model.state is ModelState.LOADING
        if loading and self._progress is None and self.shows_progress:
            token = self._progress = f"dg-lsp-loading-{next(self._tokens)}"
            try:
                await self._channel.ask(
                    types.WINDOW_WORK_DONE_PROGRESS_CREATE,
                    types.WorkDoneProgressCreateParams(token=token),
                )
            except EditorError:
                self._progress = None
                return
            self._report(token, types.WorkDoneProgressBegin(title=PROGRESS_TITLE))
        elif not loading and self._progress is not None:
            token, self._progress = self._progress, None
            self._report(token, types.WorkDoneProgressEnd(message=model.message or None))

    def _report(
        self, token: str, value: types.WorkDoneProgressBegin | types.WorkDoneProgressEnd
    ) -> None:
        self._channel.notify(types.PROGRESS, types.ProgressParams(token=token, value=value))
