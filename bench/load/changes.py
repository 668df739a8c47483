"""Many changes a second on a large file, with completions on: `python -m bench.load.changes`.

Each change is followed by a request for a suggestion behind it, and the request before is given
up. Meanwhile a measured server says how late its event loop comes back, and a second stream of
small requests says how long the server takes to answer anything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil
from dg_lsp.bench.client import Client, Request
from dg_lsp.bench.machine import machine
from dg_lsp.bench.records import LAG, LagRecord
from dg_lsp.bench.replay import SERVER, until_ready
from dg_lsp.bench.score import quantile

DOCUMENT = "file:///project/large.py"
RATE = 100
"""Changes a second."""
PING_SECONDS = 0.05
SAMPLE_SECONDS = 0.25
PATIENCE_SECONDS = 30.0
WARM_UP_SHARE = 0.3
"""How much of the memory curve is not looked at: caches fill, the allocator settles."""
PLACES = 40
"""Lines that are typed on, all over the file: caches of what stands around them fill soon."""
_MIB = 1 << 20


class Times(msgspec.Struct, frozen=True):
    """Milliseconds."""

    count: int
    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Times:
        """Their quantiles."""
        if not values:
            return cls(0, 0.0, 0.0, 0.0)
        p50, p99 = quantile(values, 0.5), quantile(values, 0.99)
        return cls(len(values), round(p50, 2), round(p99, 2), round(max(values), 2))


class Load(msgspec.Struct, frozen=True):
    """What came of it."""

    seconds: float
    file_mib: float
    changes: int
    rate: float
    """Changes a second that were really sent."""
    loop_lag: Times
    """How much later than asked the server's event loop came back."""
    own_lag: Times
    """The same without the time that other work of the machine held the processors."""
    pressure: float
    """The share of the time that something on this machine waited for a processor."""
    ping: Times
    """From a small request to its answer, as this process saw it."""
    processor_share: float
    """Of one processor, that the server's process took."""
    memory_mib: list[float]
    """Of the server's process alone, four times a second."""
    memory_slope: float
    """MiB a minute after the warm-up."""
    requests: int
    unanswered: int
    """Requests without exactly one response."""
    status: int


def large_text(size: int) -> str:
    """Python of at least `size` characters, no two functions alike."""
    parts: list[str] = []
    length, number = 0, 0
    while length < size:
        parts.append(
            f"def step_{number}(first, second):\n"
            f'    """Add {number} to the two."""\n'
            f"    total = first + second + {number}\n"
            f"    return total\n\n\n"
        )
        length += len(parts[-1])
        number += 1
    return "".join(parts)


class Typist:
    """Types a word into one line after another and takes it away again."""

    WORD = "value"

    def __init__(self, client: Client, text: str, seed: int) -> None:
        self._client = client
        self._rng = random.Random(seed)
        lines = [i for i, line in enumerate(text.split("\n")) if line.endswith("total")]
        self._lines = self._rng.sample(lines, min(PLACES, len(lines)))
        self._version = 1
        self._line = 0
        self._typed = len(self.WORD)
        self._removing = True
        self._newest: Request | None = None
        self.requests: list[int] = []

    def change(self) -> None:
        """One key and one request."""
        if self._removing and self._typed == 0:
            self._removing = False
            self._line = self._rng.choice(self._lines)
        elif not self._removing and self._typed == len(self.WORD):
            self._removing = True
        column = len("    return total") + self._typed
        if self._removing:
            self._typed -= 1
            self._send(column - 1, column, "")
        else:
            self._typed += 1
            self._send(column, column, self.WORD[self._typed - 1])

    def _send(self, start: int, end: int, text: str) -> None:
        self._version += 1
        where = [{"line": self._line, "character": column} for column in (start, end)]
        self._client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": DOCUMENT, "version": self._version},
                "contentChanges": [{"range": {"start": where[0], "end": where[1]}, "text": text}],
            },
        )
        if self._newest is not None and not self._newest.answer.done():
            self._client.cancel(self._newest)
        self._newest = self._client.send(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": DOCUMENT},
                "position": {"line": self._line, "character": start + len(text)},
                "context": {"triggerKind": 2},
            },
        )
        self.requests.append(self._newest.id)


async def load(
    command: Sequence[str],
    *,
    seconds: float,
    size: int,
    rate: float = RATE,
    settings: dict[str, Any] | None = None,
    seed: int = 1,
) -> Load:
    """Start a measured server by `command` and type into a file of `size` bytes."""
    client = await Client.start(command)
    try:
        await client.initialize(settings or {})
        await until_ready(client)
        text = large_text(size)
        client.notify(
            "textDocument/didOpen",
            {
                "textDocument": {
                    "uri": DOCUMENT,
                    "languageId": "python",
                    "version": 1,
                    "text": text,
                }
            },
        )
        await until_ready(client)  # the document is taken in
        await client.request(LAG, {})
        typist = Typist(client, text, seed)
        pings: list[float] = []
        memory: list[float] = []
        watching = [
            asyncio.ensure_future(_ping(client, pings)),
            asyncio.ensure_future(_watch(client, memory)),
        ]
        process = psutil.Process(client.process.pid)
        spent = _processor_seconds(process)
        pressed = _pressed_seconds()
        began = time.perf_counter()
        changes = round(seconds * rate)
        for number in range(changes):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            typist.change()
            await client.drain()
        took = time.perf_counter() - began
        spent = _processor_seconds(process) - spent
        for task in watching:
            task.cancel()
        pressed = _pressed_seconds() - pressed
        late = msgspec.convert((await client.request(LAG, {})).result, LagRecord)
        await _until_answered(client, typist.requests)
    finally:
        status = await client.leave()
    return Load(
        seconds=round(took, 2),
        file_mib=round(len(text) / _MIB, 2),
        changes=changes,
        rate=round(changes / took, 1),
        loop_lag=Times.of(late.ms),
        own_lag=Times.of(late.own_ms),
        pressure=round(pressed / took, 2),
        ping=Times.of(pings),
        processor_share=round(spent / took, 3),
        memory_mib=memory,
        memory_slope=round(slope(memory), 2),
        requests=len(typist.requests),
        unanswered=sum(client.answers.get(i, 0) != 1 for i in typist.requests),
        status=status,
    )


def slope(memory: Sequence[float]) -> float:
    """MiB a minute by least squares, without the warm-up."""
    kept = memory[int(len(memory) * WARM_UP_SHARE) :]
    if len(kept) < 2:
        return 0.0
    minutes = [number * SAMPLE_SECONDS / 60 for number in range(len(kept))]
    return statistics.linear_regression(minutes, kept).slope


def by_minute(memory: Sequence[float]) -> list[float]:
    """MiB at the start, after each minute and at the end."""
    each = round(60 / SAMPLE_SECONDS)
    return [*memory[::each], *(memory[-1:] if (len(memory) - 1) % each else ())]


def report(found: Load, told: str) -> str:
    """What is put into bench/results/load.md."""
    rows = [("event loop, later than asked", found.loop_lag)]
    if found.own_lag.count:
        rows.append(("the same, without waiting for a processor", found.own_lag))
    rows.append(("a small request, there and back", found.ping))
    minutes = by_minute(found.memory_mib)
    heads = [str(number) for number in range(len(minutes) - 1)] + ["end"]
    return "\n".join(
        [
            f"{found.changes} changes, {found.rate:g} a second, in {found.file_mib:g} MiB of text "
            f"for {found.seconds:.0f} s, each followed by a request for a suggestion that the next "
            f"one gives up; {told}. The server's process took {100 * found.processor_share:.0f} % "
            f"of a processor. Something on the machine waited for a processor "
            f"{100 * found.pressure:.0f} % of the time (`/proc/pressure/cpu`). "
            f"{found.requests - found.unanswered} of {found.requests} requests had exactly one "
            "response.",
            "",
            "| ms | p50 | p99 | worst | samples |",
            "|---|---|---|---|---|",
            *(f"| {name} | {t.p50:g} | {t.p99:g} | {t.worst:g} | {t.count} |" for name, t in rows),
            "",
            "| minute | " + " | ".join(heads) + " |",
            "|---" * (len(heads) + 1) + "|",
            "| MiB of the server's process | " + " | ".join(f"{m:.1f}" for m in minutes) + " |",
            "",
            f"After the first {100 * WARM_UP_SHARE:.0f} % of the time: {found.memory_slope:+.2f} "
            "MiB a minute (least squares).",
        ]
    )


def _pressed_seconds() -> float:
    """How long anything waited for a processor since the machine began; 0 where nobody tells."""
    try:
        some = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


async def _ping(client: Client, pings: list[float]) -> None:
    while True:
        request = client.send("workspace/executeCommand", {"command": "dg.status"})
        pings.append(((await request.answer).at - request.at) * 1e3)
        await asyncio.sleep(PING_SECONDS)


async def _watch(client: Client, memory: list[float]) -> None:
    process = psutil.Process(client.process.pid)
    while True:
        memory.append(round(process.memory_info().rss / _MIB, 2))
        await asyncio.sleep(SAMPLE_SECONDS)


async def _until_answered(client: Client, requests: Sequence[int]) -> None:
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < deadline and not all(map(client.answers.get, requests)):
        # A request that is answered later than those above, in case some are still worked on.
        await client.request("workspace/executeCommand", {"command": "dg.status"})
        await asyncio.sleep(SAMPLE_SECONDS)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--mib", type=float, default=5)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--model", default=None)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    found = asyncio.run(
        load(
            SERVER,
            seconds=options.seconds,
            size=round(options.mib * _MIB),
            rate=options.rate,
            settings={"model": options.model} if options.model else {},
        )
    )
    print(report(found, machine()))
    if options.json:
        options.json.write_text(json.dumps(msgspec.to_builtins(found)), encoding="utf-8")
    sys.exit(1 if found.unanswered or found.status else 0)


if __name__ == "__main__":
    main()
