"""Abuse the server by malformed messages and count its answers: `python -m bench.load.fuzz`.

Alive at the end, every request whose id can be read answered exactly once, and no answer to an id
that was never sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from dg_lsp.bench.client import Client, ServerEnded
from dg_lsp.bench.replay import SERVER

from bench.load.messages import Fuzzer
from bench.load.shots import DOCUMENT, Shot

BURST = 50
"""Messages that are written at once, before answers are read."""
PATIENCE_SECONDS = 20.0
SHOWN_BYTES = 400
TEXT = "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n"


class Verdict(msgspec.Struct):
    """What came of it."""

    seed: int
    messages: int
    seconds: float = 0.0
    sent: dict[str, int] = {}
    """By kind of message."""
    must: int = 0
    """Requests that had to be answered."""
    answered: int = 0
    without_id: int = 0
    """Errors with a null id, as for what is not JSON."""
    faults: list[str] = []
    alive: bool = False
    status: int | None = None
    """The exit status after shutdown and exit."""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return self.alive and not self.faults and self.status == 0


async def fuzz(
    command: Sequence[str], *, seed: int, count: int, settings: dict[str, Any] | None = None
) -> Verdict:
    """Start a server by `command` and send it `count` messages."""
    client = await Client.start(command)
    fuzzer = Fuzzer(seed)
    client.on_request = lambda method, params: fuzzer.reply()
    verdict = Verdict(seed, count)
    shots: list[Shot] = []
    began = time.perf_counter()
    try:
        await client.initialize(settings or {})
        document = {"uri": DOCUMENT, "languageId": "python", "version": 1, "text": TEXT}
        client.notify("textDocument/didOpen", {"textDocument": document})
        for number in range(count):
            shot = fuzzer.shot()
            shots.append(shot if shot.must is not None or shot.may is not None else _light(shot))
            client.write_bytes(shot.data)
            if number % BURST == 0:
                await client.drain()
        async with asyncio.timeout(PATIENCE_SECONDS):
            status = await client.request("workspace/executeCommand", {"command": "dg.status"})
            verdict.alive = status.error_code is None
            await _until_answered(client, shots)
    except ServerEnded as error:
        verdict.faults.append(str(error))
    except TimeoutError:
        pass  # what is missing is found below
    verdict.seconds = time.perf_counter() - began
    _judge(verdict, client, shots)
    verdict.status = await client.leave()
    return verdict


async def _until_answered(client: Client, shots: Sequence[Shot]) -> None:
    waiting = [shot.must for shot in shots if shot.must is not None]
    while waiting := [message_id for message_id in waiting if message_id not in client.answers]:
        # Answers that take longer than this one are still being worked on.
        await client.request("workspace/executeCommand", {"command": "dg.status"})


def _light(shot: Shot) -> Shot:
    """Without the bytes, which are looked at only for what is answered."""
    return shot._replace(data=b"")


def _judge(verdict: Verdict, client: Client, shots: Sequence[Shot]) -> None:
    verdict.sent = dict(Counter(shot.label for shot in shots))
    known = {shot.must if shot.must is not None else shot.may for shot in shots}
    for shot in shots:
        must, may = shot.must is not None, shot.may is not None
        if not must and not may:
            continue
        count = client.answers.get(shot.must if must else shot.may, 0)
        verdict.must += must
        verdict.answered += count > 0
        if count > 1 or (must and count == 0):
            body = shot.data[:SHOWN_BYTES].decode(errors="replace")
            verdict.faults.append(f"{shot.label}, answered {count} times: {body}")
    verdict.without_id = client.answers.get(None, 0)
    # The client's own ids are small numbers.
    strange = [i for i in client.answers if isinstance(i, str) and i not in known]
    verdict.faults += [f"An answer to the id {i!r}, which was never sent." for i in strange]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    settings = {"model": options.model} if options.model else {}
    verdict = asyncio.run(fuzz(SERVER, seed=options.seed, count=options.count, settings=settings))
    shown = msgspec.to_builtins(verdict)
    shown["faults"] = shown["faults"][:20]
    print(json.dumps({**shown, "good": verdict.good, "fault_count": len(verdict.faults)}, indent=2))
    sys.exit(0 if verdict.good else 1)


if __name__ == "__main__":
    main()
