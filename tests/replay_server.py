"""A measured server with a scripted engine: `-m tests.replay_server FOLDER JSON`.

The script is an object with `answers`, as tests.scripted_engine takes them; the tokenizer is the
folder's.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

from dg_engine.job import CanvasJob
from dg_engine.tokenizer import Tokenizer
from dg_lsp.bench.measured_server import measured
from dg_lsp.configuration import Configuration
from dg_lsp.engine_host import Backend
from dg_lsp.language_server import Server
from dg_lsp.prompts import prompt_format_for
from dg_lsp.server import run_stdio
from dg_lsp.status import StatusListener

from tests.scripted_engine import ScriptedEngine


def replay_server(folder: Path, script: dict[str, Any]) -> Server:
    """A server whose engine follows `script`."""
    tokenizer = Tokenizer(folder)
    engine = ScriptedEngine(tokenizer, script["answers"])

    def forget(job: CanvasJob) -> None:
        # Nobody looks at old jobs, and a server under load is held to a flat memory.
        engine.jobs.clear()
        engine.prefetches.clear()
        engine.cancelled.clear()

    engine.on_job = forget

    async def factory(configuration: Configuration, listener: StatusListener) -> Backend:
        return Backend(engine, tokenizer, prompt_format_for(tokenizer, folder))

    return measured(factory)


def command(folder: Path, *answers: str) -> list[str]:
    """What starts such a server."""
    script = json.dumps({"answers": answers})
    return [sys.executable, "-m", "tests.replay_server", str(folder), script]


if __name__ == "__main__":
    run_stdio(functools.partial(replay_server, Path(sys.argv[1]), json.loads(sys.argv[2])))
