"""The real server with a scripted engine; as a program, `-m tests.scripted_server FOLDER JSON`.

The script is an object: `answers`, `drafts`, `load` ("now", "later" or an error sentence), `child`.
Tests steer the engine by messages of their own: `test/release`, `test/loaded`, and the request
`test/engine`; every job that starts is told of by the notification `test/job`.
"""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from dg_engine.job import CanvasJob
from dg_engine.tokenizer import Tokenizer
from dg_lsp.configuration import Configuration
from dg_lsp.engine_host import Backend
from dg_lsp.language_server import Server
from dg_lsp.prompts import prompt_format_for
from dg_lsp.server import create_server, run_stdio
from dg_lsp.status import StatusListener

from tests.scripted_engine import ScriptedEngine


def scripted_server(folder: Path, script: dict[str, Any]) -> Server:
    """A server whose engine follows `script`, with a tokenizer from `folder`."""
    tokenizer = Tokenizer(folder)
    loaded = asyncio.Event()
    load = script.get("load", "now")
    if load == "now":
        loaded.set()
    engine = ScriptedEngine(
        tokenizer,
        script.get("answers", [""]),
        drafts=script.get("drafts", 1),
        loaded=loaded if load in ("now", "later") else None,
        load_error="" if load in ("now", "later") else load,
    )
    children: list[subprocess.Popen[bytes]] = []

    async def factory(configuration: Configuration, listener: StatusListener) -> Backend:
        return Backend(engine, tokenizer, prompt_format_for(tokenizer, folder))

    server = create_server(factory)

    def tell(job: CanvasJob) -> None:
        server.protocol.notify("test/job", {"id": job.id})
        if script.get("child"):
            # Stands for the engine's process, which ends when its standard input does.
            child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            children.append(child)
            server.protocol.notify("test/child", {"pid": child.pid})

    engine.on_job = tell

    @server.feature("test/release")
    def release(params: Any) -> None:
        engine.release.set()

    @server.feature("test/loaded")
    def load_now(params: Any) -> None:
        loaded.set()

    @server.feature("test/engine")
    def report(params: Any) -> object:
        return {
            "running": engine.running,
            "jobs": len(engine.jobs),
            "cancelled": len(engine.cancelled),
            "closed": engine.closed,
            "widths": engine.jobs[-1].widths if engine.jobs else [],
        }

    return server


if __name__ == "__main__":
    run_stdio(functools.partial(scripted_server, Path(sys.argv[1]), json.loads(sys.argv[2])))
