"""Simulated editors that type recorded sessions: `python -m bench.fleet`.

Each editor is a real server process of its own, with its own recorded author, and all ask one
engine: the one that windows share here, or with `--url` a `vllm serve` with our plugin. The number
of editors goes up from row to row. An engine's capacity is the most editors whose p90 from key to
answer stays within the bound; what follows for larger fleets is arithmetic and is said to be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from dg_engine.daemon.link import ask
from dg_engine.daemon.system import runtime_place
from dg_lsp.bench.player import Pace
from dg_lsp.bench.replay import SESSIONS, replay
from dg_lsp.bench.score import quantile
from dg_lsp.bench.sessions import Session, read_sessions
from dg_lsp.bench.tally import Tally, total_of

RESULT = Path(__file__).resolve().parent.parent / "results/fleet.md"
BOUND_MS = 300.0
FLEET = 10_000
EXIT_AFTER_SECONDS = 1


class Row(msgspec.Struct):
    """So many editors at once."""

    editors: int
    seconds: float
    tally: Tally

    @property
    def answers(self) -> list[float]:
        """Milliseconds from key to answer, of those that were not overtaken."""
        return self.tally.ms.get("answer", [])

    @property
    def jobs_a_second(self) -> float:
        """Canvas jobs that one editor causes a second, prefetched ones among them."""
        return (self.tally.jobs + self.tally.prefetch_jobs) / self.seconds / self.editors


async def row(
    count: int, sessions: Sequence[Session], each: int, settings: dict[str, object]
) -> Row:
    """So many editors, each with its own choice of sessions, begun within a second."""

    async def editor(number: int) -> list[Tally]:
        chosen = random.Random(number).sample(list(sessions), each)
        await asyncio.sleep(number / count)
        played = await replay(chosen, model="", settings=settings, pace=Pace())
        return list(played.tallies.values())

    began = time.perf_counter()
    found = await asyncio.gather(*(editor(number) for number in range(count)))
    seconds = time.perf_counter() - began
    while await ask(runtime_place()) is not None:  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.2)
    return Row(count, seconds, total_of(tally for tallies in found for tally in tallies))


def report(rows: Sequence[Row], what: str, command: str) -> str:
    """The rows as a page, and what follows."""
    table = "".join(
        f"| {r.editors} | {quantile(r.answers, 0.5):.0f} | {quantile(r.answers, 0.9):.0f} "
        f"| {len(r.answers)} | {r.tally.shown} | {r.tally.stale} | {r.tally.unanswered} "
        f"| {r.jobs_a_second:.2f} |\n"
        for r in rows
        if r.answers
    )
    within = [r for r in rows if r.answers and quantile(r.answers, 0.9) <= BOUND_MS]
    if within:
        most = within[-1].editors
        after = (
            f"{most} editors stay within {BOUND_MS:.0f} ms at p90 here. If load grows with editors "
            "as in the rows above, if a router sends an editor to the engine that has its prompt "
            f"cached, and if all type at once, {FLEET:,} editors would need {-(-FLEET // most):,} "
            "such engines. That is arithmetic; no fleet of this size was run. People type a small "
            "part of the day, so the engines for a team follow from how many type at once."
        )
    else:
        after = f"No row stays within {BOUND_MS:.0f} ms at p90 here, so nothing follows for fleets."
    return (
        "# Editors on one engine\n\n"
        f"`{command}`: {what}. Every editor is a server process that types recorded sessions at "
        "their own speed; times are from key to answer, of answers that the next key did not "
        f"overtake. {platform.machine()}, {os.cpu_count()} processors for servers and client"
        f"{' and engine' if '--url' not in command else ''}, one run.\n\n"
        "| editors | p50 ms | p90 ms | answers | shown | stale | unanswered | jobs a second and "
        "editor |\n|---|---|---|---|---|---|---|---|\n" + table + f"\n{after}\n"
    )


async def run(options: argparse.Namespace, settings: dict[str, object]) -> list[Row]:
    """All rows."""
    sessions = read_sessions(SESSIONS)
    rows: list[Row] = []
    for count in options.editors:
        rows.append(await row(count, sessions, options.sessions, settings))
        found = rows[-1]
        print(count, len(found.answers), f"{found.seconds:.0f} s", file=sys.stderr, flush=True)
    return rows


def main() -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--editors", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--sessions", type=int, default=2, help="recorded sessions of each editor")
    parser.add_argument("--url", help="a `vllm serve` with our plugin; else the shared engine")
    parser.add_argument("--model", help="the model's folder or name, for tokenizer and prompts")
    parser.add_argument("--what", default="dg-tiny on the engine that windows share")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    settings: dict[str, object] = {
        "shareEngine": True,
        "engineExitAfterS": EXIT_AFTER_SECONDS,
    }
    if options.url:
        settings |= {"engine": "remote", "remoteUrl": options.url}
    if options.model:
        settings["model"] = options.model
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        rows = asyncio.run(run(options, settings))
    command = " ".join(["python -m bench.fleet", *sys.argv[1:]])
    options.out.write_text(report(rows, options.what, command), "utf-8")
    faults = [fault for r in rows for fault in r.tally.faults]
    print(json.dumps(faults[:20], indent=1), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
