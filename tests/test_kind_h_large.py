"""Kind H: a large file, and one long line, leave the server as quick as it was."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from dg_lsp.bench.client import Client
from dg_lsp.bench.records import LAG, LagRecord
from dg_lsp.bench.replay import until_ready
from dg_lsp.bench.score import quantile

from bench.load.changes import load
from tests import server_fixtures
from tests.replay_server import command

tiny = server_fixtures.tiny
MIB = 1 << 20
LOOP_MS = 20
LONG = "file:///project/long.py"


def test_h_a_key_costs_as_much_in_a_large_file_as_in_a_small_one(tiny: Path) -> None:
    small, large = (
        asyncio.run(load(command(tiny, "first"), seconds=3, size=mib * MIB)) for mib in (1, 20)
    )
    assert (small.unanswered, small.status) == (large.unanswered, large.status) == (0, 0)
    # Processor time, for other programs of the machine take none of it.
    assert large.processor_share < 1.5 * small.processor_share


def test_h_one_line_of_a_megabyte_keeps_the_loop_free(tiny: Path) -> None:
    lag, answered = asyncio.run(typing_on_a_long_line(tiny, keys=50))
    assert answered == 50
    assert lag < LOOP_MS


async def typing_on_a_long_line(tiny: Path, keys: int) -> tuple[float, int]:
    """The median lateness of the loop in milliseconds, and how many requests were answered."""
    client = await Client.start(command(tiny, "first"))
    try:
        await client.initialize({})
        await until_ready(client)
        text = "x = [" + "12345, " * (MIB // 7) + "]\n"
        document = {"uri": LONG, "languageId": "python", "version": 1, "text": text}
        client.notify("textDocument/didOpen", {"textDocument": document})
        await client.request(LAG, {})
        column, answered = len(text) - 2, 0
        for version in range(2, keys + 2):
            place = {"line": 0, "character": column}
            client.notify(
                "textDocument/didChange",
                {
                    "textDocument": {"uri": LONG, "version": version},
                    "contentChanges": [{"range": {"start": place, "end": place}, "text": "1"}],
                },
            )
            column += 1
            answer = await client.request(
                "textDocument/inlineCompletion",
                {
                    "textDocument": {"uri": LONG},
                    "position": {"line": 0, "character": column},
                    "context": {"triggerKind": 2},
                },
            )
            answered += "items" in answer.result
        late = msgspec.convert((await client.request(LAG, {})).result, LagRecord)
        # Where the system tells, without what other programs of the machine take.
        return quantile(late.own_ms or late.ms, 0.5), answered
    finally:
        await client.leave()
