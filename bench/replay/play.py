"""Play every recorded session and write bench/results/replay.md: `python -m bench.replay.play`.

`--compare KEY=JSON` plays them once more with that setting changed, `--forgetful` without
type-through, warm start, cache and prefetch. A plot of the times is written beside it where
matplotlib is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dg_engine.models import find_model
from dg_lsp.bench.measured_server import FORGETFUL
from dg_lsp.bench.player import Pace
from dg_lsp.bench.replay import SERVER, SESSIONS, Replay, replay
from dg_lsp.bench.sessions import Session, read_sessions

from bench.replay.plot import draw

OUT = Path(__file__).parents[1] / "results" / "replay.md"


def play(
    sessions: list[Session],
    model: Path,
    pace: Pace,
    settings: dict[str, Any],
    command: Sequence[str] = SERVER,
) -> Replay:
    """One replay with some settings."""
    return asyncio.run(
        replay(
            sessions,
            model=model.name,
            settings={**settings, "model": str(model)},
            pace=pace,
            command=command,
            after_each=lambda name: print(name, file=sys.stderr, flush=True),
        )
    )


def machine() -> str:
    """What ran, in one line."""
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    return (
        f"{platform.machine()}, {os.cpu_count()} processors, {load} at the end, "
        f"Python {platform.python_version()}"
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=Path, default=SESSIONS)
    parser.add_argument("--model", default=None)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--patient", action="store_true")
    parser.add_argument("--limit", type=int, default=None, help="only the first sessions")
    parser.add_argument("--compare", action="append", default=[], metavar="KEY=JSON")
    parser.add_argument("--forgetful", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--json", type=Path, default=None, help="write every count here")
    options = parser.parse_args()
    sessions = read_sessions(options.sessions)[: options.limit]
    model, pace = find_model(options.model), Pace(options.speed, options.patient)
    runs = {"Recorded typing": play(sessions, model, pace, {})}
    for change in options.compare:
        key, _, value = change.partition("=")
        runs[f"With {change}"] = play(sessions, model, pace, {key: json.loads(value)})
    if options.forgetful:
        cold = (*SERVER, FORGETFUL)
        runs["Without type-through, warm start, cache and prefetch"] = play(
            sessions, model, pace, {"prefetch": False}, cold
        )
    parts = [f"# {name}\n\n{run.as_markdown()}\n" for name, run in runs.items()]
    asked = shlex.join(["python", "-m", "bench.replay.play", *sys.argv[1:]])
    parts.append(f"`{asked}`, {machine()}.\n")
    plot = options.out.with_suffix(".svg")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if draw({name: run.whole for name, run in runs.items()}, plot):
        parts.append(f"![Time from key to answer]({plot.name})\n")
    text = "\n".join(parts)
    print(text)
    options.out.write_text(text, encoding="utf-8")
    if options.json:
        shown = {name: run.as_object() for name, run in runs.items()}
        options.json.write_text(json.dumps(shown), encoding="utf-8")


if __name__ == "__main__":
    main()
