"""The smallest client: start the server, open a file, ask for the text at a cursor, leave.

.venv/bin/python scripts/plain_client.py FILE LINE COLUMN [SERVER ARGUMENT...]      (from 1)"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

SERVER = [str(Path(sys.executable).with_name("dg-lsp")), "--stdio"]
SETTINGS = {"invokedDeadlineMs": 60_000}  # nobody has loaded the model yet


async def complete(server: list[str], uri: str, text: str, line: int, column: int) -> str:
    """The first suggestion of the server at a cursor; empty when it has none."""
    client = LanguageClient("plain-client", "1")
    client.feature("didChangeStatus")(lambda status: None)  # what a status bar would show
    await client.start_io(*server)
    hello = types.InitializeParams(types.ClientCapabilities(), initialization_options=SETTINGS)
    await client.initialize_async(hello)
    client.initialized(types.InitializedParams())
    document = types.TextDocumentItem(uri, "python", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    answer = await client.text_document_inline_completion_async(
        types.InlineCompletionParams(
            text_document=types.TextDocumentIdentifier(uri),
            position=types.Position(line - 1, column - 1),
            context=types.InlineCompletionContext(types.InlineCompletionTriggerKind.Invoked),
        )
    )
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    items = answer.items if isinstance(answer, types.InlineCompletionList) else answer or []
    return str(items[0].insert_text) if items else ""


if __name__ == "__main__":
    path = Path(sys.argv[1]).resolve()
    at, server = (int(sys.argv[2]), int(sys.argv[3])), sys.argv[4:] or SERVER
    print(asyncio.run(complete(server, path.as_uri(), path.read_text("utf-8"), *at)))
