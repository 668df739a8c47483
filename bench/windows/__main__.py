"""One to eight windows on one engine: `python -m bench.windows`.

Each window but the first asks for a line now and then, as somebody does who types slowly; the first
is quiet in one round and floods in the next: it types fifty keys a second and asks at each of them.
Then three windows ask as fast as they are answered, beside a fourth that asks now and then, without
the focus and in it. Writes bench/results/windows.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
from dg_engine.daemon.link import ask
from dg_engine.daemon.system import runtime_place
from dg_lsp.bench.client import Client
from dg_lsp.bench.replay import until_ready
from dg_lsp.bench.score import quantile

SERVER = (sys.executable, "-m", "dg_lsp.cli.main", "--stdio")
RESULT = Path(__file__).resolve().parent.parent / "results/windows.md"
SIZES = (1, 2, 4, 8)
PAUSE_SECONDS = 1.0
BUSY_WINDOWS = 4
BUSY_PAUSE_SECONDS = 0.05
"""Between an answer and the next line in the others, so that somebody always waits."""
FLOOD_SECONDS = 0.02
SETTLE_SECONDS = 2.0
SETTINGS = {"minConfidence": 0.0, "prefetch": False, "engineExitAfterS": 2}
_MIB = 1 << 20
LINES = (
    "    total = first + second",
    "    return json.dumps(result, indent=2)",
    "    for key, value in table.items():",
    "    with open(path, encoding='utf-8') as file:",
    "    names = [name for name in values if name]",
)
HEAD = "import json\nfrom pathlib import Path\n\n\ndef step(first, second, values, table, path):\n"
ROW = HEAD.count("\n")
"""Where lines are begun."""


class Round(msgspec.Struct):
    """A number of windows, with or without a flood."""

    windows: int
    flood: bool
    servers_mib: list[float]
    """Of each server."""
    shared_mib: float
    """Of daemon and engine together."""
    ms: list[float] = []
    """From request to answer in the windows that do not flood."""
    flood_keys: int = 0


class Busy(msgspec.Struct):
    """A window that asks now and then, in focus or not, beside others that always ask."""

    focus: bool
    first_ms: list[float]
    """From request to answer, in the first."""
    others_ms: list[float]


class Window:
    """A server with one document, in which lines are begun."""

    def __init__(self, client: Client, number: int) -> None:
        self.client = client
        self.uri = f"file:///windows/w{number}.py"
        self._rng = random.Random(number)
        self._version = 1
        self._count = 0
        self._end = {"line": ROW, "character": 0}

    @classmethod
    async def open(cls, number: int) -> Window:
        """Start it and wait for its model."""
        client = await Client.start(SERVER)
        await client.initialize(SETTINGS)
        await until_ready(client)
        window = cls(client, number)
        item = {"uri": window.uri, "languageId": "python", "version": 1, "text": HEAD}
        client.notify("textDocument/didOpen", {"textDocument": item})
        return window

    def begin(self) -> str:
        """A line to type, behind one that no other has stood behind: no answer is remembered."""
        self._count += 1
        return self._rng.choice(LINES)

    def type(self, text: str) -> Any:
        """Have the last line say that, and the request for what follows, which is sent."""
        self._version += 1
        place = {"line": ROW + 1, "character": len(text)}
        change = {
            "range": {"start": {"line": ROW, "character": 0}, "end": self._end},
            "text": f"    first += {self._count}\n{text}",
        }
        self._end = place
        document = {"uri": self.uri, "version": self._version}
        self.client.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [change]}
        )
        params = {"textDocument": document, "position": place, "context": {"triggerKind": 1}}
        return self.client.send("textDocument/inlineCompletion", params)

    async def types(self, until: float, ms: list[float], pause: float = PAUSE_SECONDS) -> None:
        """Begin a line now and then, wait for the answer, and note how long it took."""
        await asyncio.sleep(self._rng.random() * pause)
        while time.monotonic() < until:
            line = self.begin()
            request = self.type(line[: self._rng.randint(8, len(line) - 3)])
            answer = await request.answer
            ms.append((answer.at - request.at) * 1000)
            await asyncio.sleep(pause * (0.5 + self._rng.random()))

    def look(self, focused: bool) -> None:
        """Whether the user looks at it."""
        self.client.notify("dg/didChangeFocus", {"focused": focused})

    async def floods(self, until: float) -> int:
        """Type without a pause; how many keys."""
        keys = 0
        while time.monotonic() < until:
            line = self.begin()
            for end in range(4, len(line)):
                self.type(line[:end])
                keys += 1
                await asyncio.sleep(FLOOD_SECONDS)
        return keys


async def measure(count: int, seconds: float) -> list[Round]:
    """Both rounds of so many windows."""
    windows = [await Window.open(number) for number in range(count)]
    rounds: list[Round] = []
    for flood in (False, True) if count > 1 else (False,):
        until = time.monotonic() + seconds
        ms: list[float] = []
        typing = windows[1:] if count > 1 else windows
        work = [asyncio.ensure_future(window.types(until, ms)) for window in typing]
        keys = await windows[0].floods(until) if flood else 0
        await asyncio.gather(*work)
        await asyncio.sleep(SETTLE_SECONDS)
        servers = [round(_mib(w.client.process.pid), 1) for w in windows]
        rounds.append(Round(count, flood, servers, await _shared_mib(), ms, keys))
    await _end(windows)
    return rounds


async def measure_second(seconds: float) -> float:
    """MiB that a second window takes: its server, and what daemon and engine grow by until it has
    its first answer.

    The first one has typed before, so that no two engines are compared: what one remembers of
    prompts, whoever typed them, is more than a window takes.
    """
    windows = [await Window.open(0)]
    await windows[0].types(time.monotonic() + seconds, [])
    await asyncio.sleep(SETTLE_SECONDS)
    before = await _shared_mib()
    windows.append(await Window.open(1))
    await windows[1].type(windows[1].begin()[:8]).answer
    await asyncio.sleep(SETTLE_SECONDS)
    more = _mib(windows[1].client.process.pid) + await _shared_mib() - before
    await _end(windows)
    return more


async def _shared_mib() -> float:
    """Of daemon and engine together."""
    status = await ask(runtime_place())
    assert status is not None
    return sum(map(_mib, [status.pid, *(e.pid for e in status.engines if e.pid is not None)]))


async def measure_focus(seconds: float) -> list[Busy]:
    """Both rounds of a window beside busy ones."""
    windows = [await Window.open(number) for number in range(BUSY_WINDOWS)]
    rounds: list[Busy] = []
    for focus in (False, True):
        for window in windows:
            window.look(focus and window is windows[0])
        until = time.monotonic() + seconds
        ms: list[list[float]] = [[] for _ in windows]
        pauses = [PAUSE_SECONDS] + [BUSY_PAUSE_SECONDS] * (BUSY_WINDOWS - 1)
        typing = zip(windows, ms, pauses, strict=True)
        await asyncio.gather(*(w.types(until, found, pause) for w, found, pause in typing))
        rounds.append(Busy(focus, ms[0], [one for found in ms[1:] for one in found]))
        await asyncio.sleep(SETTLE_SECONDS)
    await _end(windows)
    return rounds


async def _end(windows: list[Window]) -> None:
    """Close them, and wait until their daemon has ended."""
    for window in windows:
        await window.client.leave()
    while await ask(runtime_place()) is not None:  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.2)


def _mib(pid: int) -> float:
    return psutil.Process(pid).memory_info().rss / _MIB


def report(rounds: list[Round], seconds: float, busy: list[Busy], second_mib: float) -> str:
    """The rounds as a page."""
    machine = (
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    rows = "".join(
        f"| {r.windows} | {'floods' if r.flood else 'quiet'} | {quantile(r.ms, 0.5):.0f} "
        f"| {quantile(r.ms, 0.9):.0f} | {len(r.ms)} | {r.flood_keys or '-'} "
        f"| {max(r.servers_mib):.0f} | {r.shared_mib:.0f} |\n"
        for r in rounds
    )
    return (
        "# Windows on one engine\n\n"
        f"`python -m bench.windows --seconds {seconds:g}`, {machine}, dg-tiny, one run. Every "
        "window but the first begins a line about once a second, asks for the rest and waits; "
        "times are from request to answer in these windows (with one window, in it).\n\n"
        f"A second window takes {second_mib:.0f} MiB in all: its server, and what daemon and "
        "engine grow by until it has its first answer. In the rows below an engine of its own is "
        "behind each number of windows, which also holds what was typed: every line is a new "
        "one.\n\n"
        "| windows | the first | p50 ms | p90 ms | answers | its keys | a server, MiB "
        "| daemon and engine, MiB |\n|---|---|---|---|---|---|---|---|\n" + rows + _of_focus(busy)
    )


def _of_focus(busy: list[Busy]) -> str:
    """What the focus is worth."""
    rows = "".join(
        f"| {'in focus' if one.focus else 'as the others'} | {_times(one.first_ms)} "
        f"| {_times(one.others_ms)} |\n"
        for one in busy
    )
    return (
        "\n## The window that is looked at\n\n"
        f"{BUSY_WINDOWS} windows. The first begins a line about once a second, each of the others "
        f"{BUSY_PAUSE_SECONDS * 1000:.0f} ms after an answer, so that somebody always waits.\n\n"
        "| the first | its p50 ms | p90 ms | answers | the others' p50 ms | p90 ms | answers |\n"
        "|---|---|---|---|---|---|---|\n" + rows
    )


def _times(ms: list[float]) -> str:
    return f"{quantile(ms, 0.5):.0f} | {quantile(ms, 0.9):.0f} | {len(ms)}"


async def run(seconds: float) -> tuple[list[Round], list[Busy], float]:
    """All rounds, and MiB of a second window."""
    second_mib = await measure_second(seconds)
    rounds = [one for count in SIZES for one in await measure(count, seconds)]
    return rounds, await measure_focus(seconds), second_mib


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each round")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        rounds, busy, second_mib = asyncio.run(run(options.seconds))
    options.out.write_text(report(rounds, options.seconds, busy, second_mib), "utf-8")


if __name__ == "__main__":
    main()
