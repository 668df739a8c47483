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
from typing import Any

import msgspec
from dg_lsp.bench.machine import machine
from dg_lsp.bench.methods import Hole
from dg_lsp.bench.quality import HOLES, read_holes

from bench.latency.line import quantile

SERVER = "bench.latency.typing_server"
URI = "file:///project/{}.py"
AUTOMATIC = 2
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


class Editor:
    """Speaks to one server over its standard streams."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._next = 0

    @classmethod
    async def start(cls, model: str | None, remembers: bool, threads: int) -> Editor:
        """A server whose model is loaded."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            SERVER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        editor = cls(process)
        settings = {
            "threads": threads,
            "prefetch": remembers,
            "automaticDeadlineMs": 60_000,
            **({"model": model} if model else {}),
        }
        await editor.request(
            "initialize",
            {"processId": None, "capabilities": {}, "initializationOptions": settings},
        )
        editor.notify("initialized", {})
        editor.notify("bench/remember", remembers)
        return editor

    async def request(self, method: str, params: Any) -> Any:
        """Send a request and wait for its result."""
        self._next += 1
        self._write({"id": self._next, "method": method, "params": params})
        while True:
            message = await self._read()
            if message.get("id") == self._next and "method" not in message:
                return message.get("result")

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._write({"method": method, "params": params})

    async def close(self) -> None:
        """End the server."""
        await self.request("shutdown", None)
        self.notify("exit", None)
        await self._process.wait()

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        header = await self._process.stdout.readuntil(b"\r\n\r\n")
        length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return msgspec.json.decode(await self._process.stdout.readexactly(length))


async def type_line(editor: Editor, hole: Hole, name: str) -> list[Keystroke]:
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
    editor.notify("textDocument/didOpen", {"textDocument": document})
    whole = hole.middle.split("\n")[0].rstrip()[:LONGEST]
    found: list[Keystroke] = []
    ahead = (await editor.request("bench/forwards", {}))["ahead"]
    for count, letter in enumerate(whole):
        place = {"line": line, "character": column + count}
        cursor = {"line": line, "character": column + count + 1}
        before = await editor.request("bench/forwards", {})
        started = time.perf_counter()
        editor.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": count + 1},
                "contentChanges": [{"range": {"start": place, "end": place}, "text": letter}],
            },
        )
        answer = await editor.request(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": uri},
                "position": cursor,
                "context": {"triggerKind": AUTOMATIC},
            },
        )
        ms = 1e3 * (time.perf_counter() - started)
        after = await editor.request("bench/forwards", {})
        ahead, prefetched = after["ahead"], after["ahead"] - ahead
        texts = [item["insertText"] for item in answer["items"]]
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
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return found


async def measure(options: argparse.Namespace, remembers: bool) -> list[Keystroke]:
    """Type every hole's line at one server."""
    editor = await Editor.start(options.model, remembers, options.threads)
    holes = read_holes(HOLES, None)
    random.Random(0).shuffle(holes)
    found: list[Keystroke] = []
    for number, hole in enumerate(holes[: options.count + 1]):
        typed = await type_line(editor, hole, f"hole{number}")
        found += typed if number else []  # the first one warms the process up
    await editor.close()
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
