"""The main job from end to end: the real server, the real engine and dg-tiny, in an LSP client."""

from __future__ import annotations

import asyncio

import psutil
import pytest
from dg_engine.models import find_model
from lsprotocol import types

from tests.lsp_client import Editor, completion_at, editor

SERVE = "from dg_lsp.server import run_stdio; run_stdio()"
TEXT = "def add(first, second):\n    return \n\n\nprint(add(1, 2))\n"
SESSION_SECONDS = 30


@pytest.mark.asyncio
async def test_open_complete_type_complete_cancel_edit_shut_down() -> None:
    model = str(find_model("dg-tiny"))
    async with asyncio.timeout(SESSION_SECONDS), editor("-c", SERVE) as client:
        # A model on two busy cores may need longer than an editor would wait.
        await client.begin(TEXT, model=model, shareEngine=False, automaticDeadlineMs=20_000)
        (first,) = await client.complete(1, 11)
        assert first.strip()
        assert "\n" not in first

        client.type(2, 1, 11, "first + ")
        again = await client.complete(1, 19)
        assert all(text.strip() for text in again)

        client.type(3, 1, 19, "zq")
        third = client.protocol.send_request(
            types.TEXT_DOCUMENT_INLINE_COMPLETION, completion_at(1, 21), msg_id="third"
        )
        client.cancel_request(types.CancelParams(id="third"))
        with pytest.raises(Exception, match="canceled"):
            await asyncio.wrap_future(third)

        edited = await client.edit(3, 4, "print the sum of three numbers")
        assert edited["applied"] is True or str(edited["reason"]).endswith(".")
        assert len(client.applied) == int(bool(edited["applied"]))

        assert await client.leave() == 0


@pytest.mark.asyncio
async def test_an_engine_killed_in_the_middle_is_answered_for_and_comes_back() -> None:
    model = str(find_model("dg-tiny"))
    async with asyncio.timeout(SESSION_SECONDS), editor("-c", SERVE) as client:
        await client.begin(TEXT, model=model, shareEngine=False, invokedDeadlineMs=20_000)
        assert await client.complete(1, 11, invoked=True)
        first = engine_of(client)
        first.suspend()  # so that the request is surely in the middle
        asked = asyncio.ensure_future(client.complete(4, 6, invoked=True))
        await client.workspace_execute_command_async(types.ExecuteCommandParams("dg.status"))
        first.kill()
        assert await asyncio.wait_for(asked, 2) == []
        # Asked while the engine starts again, answered once it has.
        assert await client.complete(4, 6, invoked=True)
        assert engine_of(client).pid != first.pid
        assert await client.leave() == 0


def engine_of(client: Editor) -> psutil.Process:
    assert client._server is not None
    (engine,) = psutil.Process(client._server.pid).children()
    return engine
