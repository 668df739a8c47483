"""One editor's session from start to end against the real process, by an ordinary LSP client."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities

from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer
from tests.wire_client import ROOT

URI = "file:///project/example.py"
TEXT = "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n"
ANSWERS = ["a + b", " b", "!wait", "(a, b)"]

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[LanguageClient]:
    folder = write_tokenizer(tmp_path, FIM_TOKENS)
    found = LanguageClient()
    script = json.dumps({"answers": ANSWERS})
    command = (sys.executable, "-m", "tests.scripted_server", str(folder), script)
    await found.start_io(*command, cwd=ROOT)
    yield found
    assert found._server is not None
    if found._server.returncode is None:
        found._server.kill()  # the test failed: stopping would wait for ever
    await found.stop()


def completion_at(line: int, character: int) -> types.InlineCompletionParams:
    return types.InlineCompletionParams(
        text_document=types.TextDocumentIdentifier(uri=URI),
        position=types.Position(line=line, character=character),
        context=types.InlineCompletionContext(
            trigger_kind=types.InlineCompletionTriggerKind.Automatic
        ),
    )


def texts(result: object) -> list[object]:
    assert isinstance(result, types.InlineCompletionList)
    return [item.insert_text for item in result.items]


async def test_open_complete_type_complete_cancel_edit_shut_down(client: LanguageClient) -> None:
    applied: list[types.ApplyWorkspaceEditParams] = []

    @client.feature(types.WORKSPACE_APPLY_EDIT)
    def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        applied.append(params)
        return types.ApplyWorkspaceEditResult(applied=True)

    @client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
    def begin_progress(params: types.WorkDoneProgressCreateParams) -> None:
        """Agree to show the loading of the model."""

    result = await client.initialize_session(
        types.InitializeParams(
            capabilities=client_capabilities("visual-studio-code"), root_uri="file:///project"
        )
    )
    assert result.capabilities.inline_completion_provider is not None

    client.text_document_did_open(
        types.DidOpenTextDocumentParams(
            text_document=types.TextDocumentItem(
                uri=URI, language_id="python", version=1, text=TEXT
            )
        )
    )
    first = await client.text_document_inline_completion_async(completion_at(1, 11))
    assert texts(first) == ["a + b"]

    place = types.Position(line=1, character=11)
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            text_document=types.VersionedTextDocumentIdentifier(uri=URI, version=2),
            content_changes=[
                types.TextDocumentContentChangePartial(
                    range=types.Range(start=place, end=place), text="a +"
                )
            ],
        )
    )
    second = await client.text_document_inline_completion_async(completion_at(1, 14))
    assert texts(second) == [" b"]

    started = client.protocol.wait_for_notification_async("test/job")
    third = asyncio.ensure_future(
        client.protocol.send_request_async(
            types.TEXT_DOCUMENT_INLINE_COMPLETION, completion_at(1, 14), msg_id="third"
        )
    )
    await started
    client.cancel_request(types.CancelParams(id="third"))
    with pytest.raises(Exception, match="canceled"):
        await third

    edited = await client.workspace_execute_command_async(
        types.ExecuteCommandParams(
            command="dg.edit",
            arguments=[
                {
                    "uri": URI,
                    "version": 2,
                    "range": {
                        "start": {"line": 4, "character": 0},
                        "end": {"line": 4, "character": 3},
                    },
                    "instruction": "print nothing",
                }
            ],
        )
    )
    assert edited["applied"] is True, edited["reason"]
    (change,) = applied[0].edit.document_changes or []
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.version == 2

    await client.shutdown_session()
    assert client._server is not None
    assert await asyncio.wait_for(client._server.wait(), 2) == 0
