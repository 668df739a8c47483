"""Eight windows on one engine, and every minute something breaks: `python -m bench.soak`.

All along: every request gets exactly one response, no answer is for another place or an older
text, and memory and descriptors stay flat. At the end nothing waits or runs, and no process is
left. Writes bench/results/soak.md and soak.svg.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import psutil
from dg_engine.daemon.link import ask
from dg_engine.daemon.system import runtime_place
from dg_lsp.bench.score import quantile

from bench.soak.plot import draw
from bench.soak.typist import PATIENCE_SECONDS, Counts, Typist

RESULTS = Path(__file__).resolve().parent.parent / "results"
SAMPLE_SECONDS = 2.0
EXIT_AFTER_SECONDS = 5
NOTICE_SECONDS = 0.5
"""Until then a window may not have noticed that its engine has gone."""
FAULTS = ("engine killed", "daemon killed", "window killed", "socket deleted", "daemon stopped 3 s")
_MIB = 1 << 20


class Sample(msgspec.Struct):
    """All processes at one time."""

    at: float
    windows_mib: float
    """Of all servers together."""
    daemon_mib: float
    engine_mib: float
    descriptors: int
    """Of servers and daemon together."""


class Break(msgspec.Struct):
    """Something that was broken, and how long it took until the model was ready in every window."""

    at: float
    what: str
    seconds: float | None = None


class Soak:
    """The run."""

    def __init__(self, windows: int, seconds: float, every: float) -> None:
        self.seconds = seconds
        self.every = every
        self.counts = Counts()
        self.samples: list[Sample] = []
        self.breaks: list[Break] = []
        settings: dict[str, object] = {
            "shareEngine": True,
            "engineExitAfterS": EXIT_AFTER_SECONDS,
            "minConfidence": 0.0,
        }
        self.typists = [Typist(f"w{n}", settings, self.counts) for n in range(windows)]
        self._rng = random.Random(7)
        self._began = 0.0

    async def run(self) -> None:
        """Type, break and watch; then end all, and see that it has ended."""
        self._began = time.monotonic()
        until = self._began + self.seconds
        helpers = [asyncio.create_task(self._watch()), asyncio.create_task(self._break(until))]
        await asyncio.gather(*(typist.run(until) for typist in self.typists))
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        await asyncio.sleep(3)
        await self._is_quiet()
        await asyncio.gather(*(typist.end() for typist in self.typists))
        await self._is_over()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            status = await ask(runtime_place())
            servers = [t.client.process.pid for t in self.typists if t.client is not None]
            daemon = None if status is None else status.pid
            engines = [] if status is None else [e.pid for e in status.engines]
            self.samples.append(
                Sample(
                    time.monotonic() - self._began,
                    sum(_mib(pid) for pid in servers),
                    _mib(daemon),
                    sum(_mib(pid) for pid in engines),
                    sum(_descriptors(pid) for pid in (*servers, daemon)),
                )
            )

    async def _break(self, until: float) -> None:
        number = 0
        while time.monotonic() + self.every + 30 < until:
            await asyncio.sleep(self.every)
            what = FAULTS[number % len(FAULTS)]
            number += 1
            now = time.monotonic()
            made = Break(now - self._began, what)
            self.breaks.append(made)
            await self._inflict(what)
            await asyncio.sleep(NOTICE_SECONDS)
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await asyncio.gather(*(typist.ready() for typist in self.typists))
                made.seconds = time.monotonic() - now
            except TimeoutError:
                self.counts.faults.append(f"{what}: not all windows came back")

    async def _inflict(self, what: str) -> None:
        status = await ask(runtime_place())
        if status is None:
            return
        match what:
            case "engine killed":
                pids = [e.pid for e in status.engines if e.pid is not None]
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
            case "daemon killed":
                os.kill(status.pid, signal.SIGKILL)
            case "window killed":
                client = self._rng.choice(self.typists).client
                if client is not None:
                    client.process.kill()
            case "socket deleted":
                runtime_place().socket.unlink(missing_ok=True)
            case _:
                os.kill(status.pid, signal.SIGSTOP)
                await asyncio.sleep(3)
                os.kill(status.pid, signal.SIGCONT)

    async def _is_quiet(self) -> None:
        """Nothing may wait or run once nobody types."""
        status = await ask(runtime_place())
        if status is None:
            self.counts.faults.append("no daemon serves at the end")
            return
        for engine in status.engines:
            for window in engine.windows:
                if window.waiting or window.running:
                    self.counts.faults.append(f"{window.name} still has jobs at the end")

    async def _is_over(self) -> None:
        """All processes have ended once the last window has."""
        folder = os.environ["XDG_RUNTIME_DIR"]
        for _ in range(int((EXIT_AFTER_SECONDS + 10) / 0.2)):
            if not _of(folder):
                return
            await asyncio.sleep(0.2)
        self.counts.faults.append(f"{len(_of(folder))} processes are left")


def _of(folder: str) -> list[int]:
    """Processes that were started for this run."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if (
                process.pid != os.getpid()
                and process.environ().get("XDG_RUNTIME_DIR") == folder
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def _mib(pid: int | None) -> float:
    try:
        return 0.0 if pid is None else psutil.Process(pid).memory_info().rss / _MIB
    except psutil.Error:
        return 0.0


def _descriptors(pid: int | None) -> int:
    try:
        return 0 if pid is None else psutil.Process(pid).num_fds()
    except psutil.Error:
        return 0


def slope(samples: list[Sample], field: str) -> float:
    """Growth a minute in the second half, by the medians of its first and last thirds."""
    half = [getattr(s, field) for s in samples[len(samples) // 2 :]]
    third = max(len(half) // 3, 1)
    first, last = sorted(half[:third])[third // 2], sorted(half[-third:])[third // 2]
    return (last - first) / (len(half) * 2 / 3 * SAMPLE_SECONDS / 60)


def report(soak: Soak, plotted: bool) -> str:
    """The run as a page."""
    c, s = soak.counts, soak.samples
    machine = (
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    times = f"p50 {quantile(c.ms, 0.5):.0f} ms, p90 {quantile(c.ms, 0.9):.0f} ms" if c.ms else "-"
    rows = "".join(
        f"| {name} | {getattr(s[len(s) // 4], field):.0f} | {getattr(s[-1], field):.0f} "
        f"| {slope(s, field):+.2f} |\n"
        for name, field in (
            ("servers, MiB", "windows_mib"),
            ("daemon, MiB", "daemon_mib"),
            ("engine, MiB", "engine_mib"),
            ("descriptors", "descriptors"),
        )
    )
    broken = "".join(
        f"| {what} | {len(lasted)} | {max(lasted):.1f} |\n"
        for what in FAULTS
        if (lasted := [b.seconds for b in soak.breaks if b.what == what and b.seconds is not None])
    )
    faults = "".join(f"- {fault}\n" for fault in c.faults[:50]) or "None.\n"
    return (
        "# Soak\n\n"
        f"`python -m bench.soak --windows {len(soak.typists)} --minutes {soak.seconds / 60:g} "
        f"--every {soak.every:g}`, {machine}: all windows on one engine with dg-tiny, "
        f"and every {soak.every:g} s something breaks.\n\n"
        f"{c.keys:,} keys, {c.requests:,} requests, {c.cancelled:,} cancelled, "
        f"{c.shown:,} answered with text ({times}, all windows typing at once), "
        f"{c.accepted:,} accepted, {c.reopened} windows opened again.\n\n"
        f"## Faults\n\n{faults}\n"
        "## What was broken\n\n| what | times | longest until every window was ready, s |\n"
        f"|---|---|---|\n{broken}\n"
        "## Memory and descriptors\n\n"
        f"| | after a quarter | at the end | a minute, second half |\n|---|---|---|---|\n{rows}"
        + ("\n![Memory and descriptors over time](soak.svg)\n" if plotted else "")
    )


def main() -> int:
    """Run and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two faults")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        soak = Soak(options.windows, options.minutes * 60, options.every)
        asyncio.run(soak.run())
    plotted = draw(soak.samples, [(b.at, b.what) for b in soak.breaks], options.out / "soak.svg")
    (options.out / "soak.md").write_text(report(soak, plotted), "utf-8")
    print(*soak.counts.faults[:20], sep="\n", file=sys.stderr)
    return 1 if soak.counts.faults else 0


if __name__ == "__main__":
    sys.exit(main())
