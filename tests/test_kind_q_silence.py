"""Kind Q: whatever keeps the real server silent, it says so and says what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import server_fixtures
from tests.server_fixtures import CURSOR, TEXT, Clients
from tests.wire_client import WireClient

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio
ASKED, TYPING = 1, 2
MEMORY = "The model does not fit into memory; choose a smaller one or free some."
MAIN = "from dg_lsp.cli.main import main; main()"

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    # script of the engine; settings; the reason and a part of its sentence
    "loading": ({"load": "later"}, {"automaticDeadlineMs": 50}, "loading", "still loading"),
    "failed": ({"load": "The model is broken; copy it again."}, {}, "engine_down", "copy it again"),
    "out of memory": ({"load": MEMORY}, {}, "engine_down", "choose a smaller one"),
    "excluded": ({}, {"exclude": ["*.py"]}, "excluded", "`*.py` in the setting exclude"),
    "paused": ({}, {"enabled": False}, "paused", "the setting enabled"),
    "too slow": ({"answers": ["!wait"]}, {"automaticDeadlineMs": 50}, "too_slow", "within 50 ms"),
    "error": ({"answers": ["!error"]}, {}, "engine_down", "The script says so."),
    "refused": ({"answers": ["!refuse"]}, {}, "engine_down", "The scripted engine refuses."),
    "unsure": ({}, {"minConfidence": 0.95}, "unsure", "90% sure; the setting minConfidence wants"),
    "nothing": ({"answers": [""]}, {}, "no_suggestion", "."),
}


async def silent(client: WireClient, settings: dict[str, Any]) -> dict[str, Any]:
    """What the server says of a request that comes to nothing."""
    await client.initialize(initializationOptions={"logLevel": "info", **settings})
    client.open(TEXT)
    assert await client.complete(*CURSOR) == []
    return (await client.request("dg/status", None))["result"]


@pytest.mark.parametrize("case", CASES)
async def test_q_every_silence_says_why(tiny: Path, case: str) -> None:
    script, settings, why, part = CASES[case]
    client = await WireClient.start(tiny, subprocess.PIPE, **{"answers": ["a + b"], **script})
    try:
        found = await silent(client, settings)
        assert found["lastReason"]["why"] == why
        assert part in found["lastReason"]["message"]
        client.notify("exit", None)
        assert client.process.stderr is not None
        logged = (await client.process.stderr.read()).decode()
        assert f"No suggestion ({why}): {found['lastReason']['message']}" in logged
    finally:
        await client.close()


async def test_q_a_model_that_is_missing_is_named_with_the_next_step(tmp_path: Path) -> None:
    client = await WireClient.run("-c", MAIN, "--stdio")
    try:
        found = await silent(client, {"model": str(tmp_path / "nowhere")})
        assert (found["state"], found["model"], found["kind"]) == ("failed", "nowhere", "Error")
        assert found["lastReason"]["why"] == "engine_down"
        assert "give the folder that holds config.json" in found["lastReason"]["message"]
    finally:
        await client.close()


async def test_q_a_draft_that_nobody_judged_is_no_suggestion_unless_one_asks(
    clients: Clients,
) -> None:
    client = await clients.process("!paced a + b", drafts=3)
    limits = {"automaticDeadlineMs": 500, "invokedDeadlineMs": 500}
    await client.initialize(initializationOptions=limits)
    client.open(TEXT)
    for number, (kind, shown) in enumerate([(TYPING, []), (ASKED, ["a"])], 1):
        asked = client.ask_completion(*CURSOR, kind=kind)
        await client.until_said("test/job", number)
        client.notify("test/release", {})  # the first of three drafts
        items = (await client.answer(asked))["result"]["items"]
        assert [item["insertText"] for item in items] == shown
        reason = (await client.request("dg/status", {}))["result"]["lastReason"]
        assert (reason and reason["why"]) == ("too_slow" if kind == TYPING else None)
