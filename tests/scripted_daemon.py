"""The daemon's process over an engine without a model; takes the daemon's options and --version."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from dg_engine.client import EngineClient, LinkedEngine, OnStatus
from dg_engine.daemon.daemon import Daemon, Limits
from dg_engine.daemon.messages import Hello
from dg_engine.daemon.system import runtime_place

CHILD = Path(__file__).with_name("scripted_child.py")


def start(hello: Hello, on_status: OnStatus) -> LinkedEngine:
    """An engine that loads for as many seconds as the model's folder says, if it says so."""
    load = hello.model.rpartition("-")[2] if "load-" in hello.model else "0"
    command = [sys.executable, "-P", str(CHILD), load]
    if "missing" in hello.model:
        return EngineClient(Path(hello.model), on_status=on_status)
    return EngineClient(
        Path(hello.model), command=command, on_status=on_status, backoff_seconds=(0.1,)
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--unload-after", type=float, default=60.0)
    parser.add_argument("--exit-after", type=float, default=60.0)
    parser.add_argument("--version", default="1.0")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    limits = Limits(options.unload_after, options.exit_after)
    daemon = Daemon(runtime_place(), options.version, limits, start)
    if daemon.open() and not os.fork():
        asyncio.run(daemon.run())


if __name__ == "__main__":
    main()
