"""An ordinary LSP client for tests, as editors are: pytest-lsp's, over standard streams."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncGenerator

from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities

from tests.wire_client import ROOT

URI = "file:///project/example.py"


class Editor(LanguageClient):
    """A client that takes edits, and shows progress without drawing it."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[types.ApplyWorkspaceEditParams] = []

        @self.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.applied.append(params)
            return types.ApplyWorkspaceEditResult(applied=True)

        @self.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def begin_progress(params: types.WorkDoneProgressCreateParams) -> None:
            """Agree."""

    async def begin(self, text: str, **options: object) -> types.InitializeResult:
        """The handshake with these settings, and one open document."""
        result = await self.initialize_session(
            types.InitializeParams(
                capabilities=client_capabilities("visual-studio-code"),
                root_uri="file:///project",
                initialization_options=options,
            )
        )
        self.text_document_did_open(
            types.DidOpenTextDocumentParams(
                text_document=types.TextDocumentItem(
                    uri=URI, language_id="python", version=1, text=text
                )
            )
        )
        return result

    def type(self, version: int, line: int, character: int, text: str) -> None:
        """Type text at a place."""
        place = types.Position(line=line, character=character)
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                text_document=types.VersionedTextDocumentIdentifier(uri=URI, version=version),
                content_changes=[
                    types.TextDocumentContentChangePartial(
                        range=types.Range(start=place, end=place), text=text
                    )
                ],
            )
        )

    async def complete(self, line: int, character: int, *, invoked: bool = False) -> list[str]:
        """The texts that are suggested."""
        params = completion_at(line, character, invoked=invoked)
        result = await self.text_document_inline_completion_async(params)
        assert isinstance(result, types.InlineCompletionList)
        return [str(item.insert_text) for item in result.items]

    async def edit(self, version: int, line: int, instruction: str) -> dict[str, object]:
        """Run dg.edit on one line."""
        start, end = {"line": line, "character": 0}, {"line": line, "character": 1}
        argument = {
            "uri": URI,
            "version": version,
            "range": {"start": start, "end": end},
            "instruction": instruction,
        }
        return await self.workspace_execute_command_async(
            types.ExecuteCommandParams(command="dg.edit", arguments=[argument])
        )

    async def leave(self) -> int:
        """shutdown and exit; the server's exit status."""
        await self.shutdown_session()
        assert self._server is not None
        return await self._server.wait()


def completion_at(
    line: int, character: int, *, invoked: bool = False
) -> types.InlineCompletionParams:
    kinds = types.InlineCompletionTriggerKind
    return types.InlineCompletionParams(
        text_document=types.TextDocumentIdentifier(uri=URI),
        position=types.Position(line=line, character=character),
        context=types.InlineCompletionContext(
            trigger_kind=kinds.Invoked if invoked else kinds.Automatic
        ),
    )


@contextlib.asynccontextmanager
async def editor(*arguments: str) -> AsyncGenerator[Editor]:
    """A client of the server that `python ARGUMENTS` starts."""
    found = Editor()
    await found.start_io(sys.executable, *arguments, cwd=ROOT)
    try:
        yield found
    finally:
        assert found._server is not None
        if found._server.returncode is None:
            found._server.kill()  # the test failed: stopping would wait for ever
        await found.stop()
