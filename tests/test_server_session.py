"""One editor's session from start to end against the real process, with a scripted engine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from lsprotocol import types

from tests.lsp_client import completion_at, editor
from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer

TEXT = "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n"
ANSWERS = ["a + b", "!wait", "(a, b)"]


@pytest.mark.asyncio
async def test_open_complete_type_complete_cancel_edit_shut_down(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path, FIM_TOKENS)
    script = json.dumps({"answers": ANSWERS})
    async with editor("-m", "tests.scripted_server", str(folder), script) as client:
        result = await client.begin(TEXT)
        assert result.capabilities.inline_completion_provider is not None
        assert await client.complete(1, 11) == ["a + b"]

        client.type(2, 1, 11, "a +")
        assert await client.complete(1, 14) == [" b"]  # the rest, without the engine

        client.type(3, 1, 14, "=")
        started = client.protocol.wait_for_notification_async("test/job")
        third = client.protocol.send_request(
            types.TEXT_DOCUMENT_INLINE_COMPLETION, completion_at(1, 15), msg_id="third"
        )
        await started
        client.cancel_request(types.CancelParams(id="third"))
        with pytest.raises(Exception, match="canceled"):
            await asyncio.wrap_future(third)

        edited = await client.edit(3, 4, "print nothing")
        assert edited["applied"] is True, edited["reason"]
        (change,) = client.applied[0].edit.document_changes or []
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.version == 3

        assert await asyncio.wait_for(client.leave(), 2) == 0
