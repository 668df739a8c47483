"""Types held-out lines at the real server, letter by letter: `python -m bench.latency.typing`.

The line that is missing in each hole is typed as people do who look at the ghost text: one
letter, one request, the answer awaited, the next letter. Printed are the engine's forwards per
keystroke and the time from a keystroke to its answer: cold, where every keystroke is a place that
the server has not seen, and with all that the server remembers.

The server is the real one with its engine process; the forwards are counted in between.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from pathlib import Path

import msgspec
from dg_lsp.bench.client import Client
from dg_lsp.bench.holes import HOLES, Hole, read_holes
from dg_lsp.bench.machine import machine
from dg_lsp.bench.player import AUTOMATIC, INLINE_COMPLETION
from dg_lsp.bench.score import quantile

SERVER = "bench.latency.typing_server"
URI = "file:///project/{}.py"
LONGEST = 40
"""Letters of a line that are typed at most."""


class Keystroke(msgspec.Struct, frozen=True):
    """One letter and the answer to the request behind it."""

    ms: float
    forwards: int
    """For this request."""
    ahead: int
    """For prefetches meanwhile."""
    shown: bool
    """Whether anything was suggested."""
    right: bool
    """Whether what was suggested is what was typed next."""


async def started(model: str | None, remembers: bool, threads: int) -> Client:
    """A server, which loads its model from now on."""
    client = await Client.start((sys.executable, "-m", SERVER))
    settings = {"threads": threads, "prefetch": remembers, "automaticDeadlineMs": 60_000}
    await client.initialize(settings | ({"model": model} if model else {}))
    client.notify("bench/remember", remembers)
    return client


async def forwards_of(client: Client) -> dict[str, int]:
    """The engine's forwards so far: those for requests, and those ahead of any."""
    return (await client.request("bench/forwards", {})).result


async def type_line(client: Client, hole: Hole, name: str) -> list[Keystroke]:
    """Type the first line of a hole's text at its place."""
    uri = URI.format(name)
    line = hole.prefix.count("\n")
    column = len(hole.prefix) - (hole.prefix.rfind("\n") + 1)
    document = {
        "uri": uri,
        "languageId": "python",
        "version": 0,
        "text": hole.prefix + hole.suffix,
    }
    client.notify("textDocument/didOpen", {"textDocument": document})
    whole = hole.middle.split("\n")[0].rstrip()[:LONGEST]
    found: list[Keystroke] = []
    ahead = (await forwards_of(client))["ahead"]
    for count, letter in enumerate(whole):
        place = {"line": line, "character": column + count}
        cursor = {"line": line, "character": column + count + 1}
        before = await forwards_of(client)
        started = time.perf_counter()
        client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": count + 1},
                "contentChanges": [{"range": {"start": place, "end": place}, "text": letter}],
            },
        )
        answer = await client.request(
            INLINE_COMPLETION,
            {
                "textDocument": {"uri": uri},
                "position": cursor,
                "context": {"triggerKind": AUTOMATIC},
            },
        )
        ms = 1e3 * (time.perf_counter() - started)
        after = await forwards_of(client)
        ahead, prefetched = after["ahead"], after["ahead"] - ahead
        texts = [item["insertText"] for item in answer.result["items"]]
        rest = whole[count + 1 :]
        right = bool(texts) and bool(rest) and rest.startswith(texts[0].rstrip())
        found.append(
            Keystroke(
                ms,
                after["asked"] - before["asked"],
                prefetched,
                bool(texts),
                right,
            )
        )
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return found


async def measure(options: argparse.Namespace, remembers: bool) -> list[Keystroke]:
    """Type every hole's line at one server."""
    client = await started(options.model, remembers, options.threads)
    holes = read_holes(HOLES, None)
    random.Random(0).shuffle(holes)
    found: list[Keystroke] = []
    for number, hole in enumerate(holes[: options.count + 1]):
        typed = await type_line(client, hole, f"hole{number}")
        found += typed if number else []  # the first one warms the process up
    await client.leave()
    return found


def row(name: str, found: list[Keystroke]) -> str:
    """One way of working as a row of the table."""
    times = [key.ms for key in found]
    forwards = [key.forwards for key in found]
    free = [key.ms for key in found if not key.forwards]
    through = [key.ms for key in found if key.shown and not key.forwards and not key.ahead]
    return (
        f"| {name} | {len(found)} | {sum(forwards) / len(found):.2f} "
        f"| {sum(key.ahead for key in found) / len(found):.2f} "
        f"| {100 * len(free) / len(found):.0f}% | {quantile(times, 0.5):.1f} "
        f"| {quantile(times, 0.9):.1f} | {f'{quantile(free, 0.99):.1f}' if free else '-'} "
        f"| {f'{quantile(through, 0.99):.1f} of {len(through)}' if through else '-'} "
        f"| {100 * sum(k.shown for k in found) / len(found):.0f}% "
        f"| {100 * sum(k.right for k in found) / len(found):.0f}% |"
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    rows = [
        row(name, asyncio.run(measure(options, remembers)))
        for name, remembers in (("cold", False), ("remembering", True))
    ]
    text = "\n".join(
        [
            f"{options.count} held-out lines, letter by letter; {machine()}.",
            "",
            "| server | keystrokes | forwards per keystroke | ahead | without the engine | p50 ms "
            "| p90 ms | p99 ms without the engine | p99 ms shown with no forward meanwhile "
            "| something shown | goes on as typed |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *rows,
        ]
    )
    print(text)
    if options.out:
        options.out.write_text("# Typing a line\n\n" + text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
