"""The real server with a scripted engine; as a program, `-m tests.scripted_server FOLDER JSON`.

The script is an object: `answers`, `drafts`, `score` (nats a token), `child`, and `load` ("now",
"later" or an error sentence).
Tests steer the engine by messages of their own: `test/release`, `test/hold`, `test/loaded`, and
the requests `test/engine`, `test/shown` and `test/shown_ahead` (what every job, or every one of
the lowest priority, showed the model); `test/fail` is a
handler that fails. Every job that starts is told of by the notification `test/job`, unless the
script says `quiet`: editors complain of what they do not know.
"""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from dg_engine.job import CanvasJob, Priority, Role
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
        score=script.get("score", -0.1),
        ahead=script.get("ahead", [""]),
        loaded=loaded if load in ("now", "later") else None,
        load_error="" if load in ("now", "later") else load,
    )
    children: list[subprocess.Popen[bytes]] = []

    async def factory(configuration: Configuration, listener: StatusListener) -> Backend:
        return Backend(engine, tokenizer, prompt_format_for(tokenizer, folder))

    server = create_server(factory)

    def tell(job: CanvasJob) -> None:
        if script.get("quiet"):
            return
        prefetch = job.priority is Priority.PREFETCH
        server.protocol.notify("test/prefetch" if prefetch else "test/job", {"id": job.id})
        if script.get("child"):
            # Stands for the engine's process, which ends when its standard input does.
            child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            children.append(child)
            server.protocol.notify("test/child", {"pid": child.pid})

    engine.on_job = tell

    @server.feature("test/release")
    def release(params: Any) -> None:
        engine.release.set()

    @server.feature("test/hold")
    def hold(params: Any) -> None:
        engine.release.clear()

    @server.feature("test/loaded")
    def load_now(params: Any) -> None:
        loaded.set()

    @server.feature("test/engine")
    def report(params: Any) -> object:
        return {
            "running": engine.running,
            "jobs": len(engine.jobs),
            "prefetches": len(engine.prefetches),
            "cancelled": len(engine.cancelled),
            "closed": engine.closed,
            "widths": engine.jobs[-1].widths if engine.jobs else [],
            "roles": Counter(Role(role).name for role in engine.jobs[-1].roles)
            if engine.jobs
            else {},
        }

    def texts(jobs: list[CanvasJob]) -> object:
        decode = tokenizer.decode
        return [{"prompt": decode(job.prompt), "canvas": decode(job.canvas)} for job in jobs]

    @server.feature("test/shown")
    def shown(params: Any) -> object:
        return texts(engine.jobs)

    @server.feature("test/shown_ahead")
    def shown_ahead(params: Any) -> object:
        return texts(engine.prefetches)

    @server.feature("test/fail")
    def fail(params: Any) -> None:
        raise ValueError(params)

    return server


if __name__ == "__main__":
    run_stdio(functools.partial(scripted_server, Path(sys.argv[1]), json.loads(sys.argv[2])))
