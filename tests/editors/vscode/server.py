"""The real server, whose engine process follows a script: `-m tests.editors.vscode.server FOLDER`.

FOLDER holds `script.json`; the tokenizer, the process ids of server and engine, and what the editor
says of next edits (`next_edits.txt`), of suggestions that it took (`taken.txt`) and of its focus
(`focus.txt`) are put there.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dg_engine.client import EngineClient, EngineStatus
from dg_engine.tokenizer import Tokenizer
from dg_lsp.configuration import Configuration
from dg_lsp.engine_host import Backend
from dg_lsp.language_server import Server
from dg_lsp.prompts import prompt_format_for
from dg_lsp.server import create_server, run_stdio
from dg_lsp.status import ModelState, ModelStatus, StatusListener

from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer

T = TypeVar("T")


async def _engine(folder: Path, configuration: Configuration, listener: StatusListener) -> Backend:
    def relay(status: EngineStatus) -> None:
        state = ModelState(status.state.value)
        if state in (ModelState.RESTARTING, ModelState.FAILED, ModelState.READY):
            listener(ModelStatus(state, status.message if state is not ModelState.READY else ""))

    # What reached the server, for the tests to see.
    (folder / "configuration.txt").write_text(repr(configuration))
    arguments = [str(folder), str(folder / "script.json")]
    client = EngineClient(
        folder,
        on_status=relay,
        command=[sys.executable, "-m", "tests.editors.vscode.engine_child", *arguments],
    )
    await client.start()
    tokenizer = Tokenizer(folder)
    return Backend(client, tokenizer, prompt_format_for(tokenizer, folder))


def scripted(folder: Path) -> Server:
    """A server for one editor."""
    server = create_server(functools.partial(_engine, folder))
    desk, shelf = server.session.next_edits, server.session.desk.shelf
    desk.drawn = _written(folder / "next_edits.txt", "drawn", desk.drawn)
    desk.taken = _written(folder / "next_edits.txt", "taken", desk.taken)
    shelf.taken = _written(folder / "taken.txt", "taken", shelf.taken)
    engine = server.session.engine
    engine.set_focus = _written(folder / "focus.txt", "focused", engine.set_focus)
    return server


def _written(path: Path, word: str, handle: Callable[[T], None]) -> Callable[[T], None]:
    def written(told: T) -> None:
        with path.open("a") as file:
            file.write(f"{word} {told}\n")
        handle(told)

    return written


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "server.pid").write_text(str(os.getpid()))
    if not (folder / "tokenizer.json").exists():
        write_tokenizer(folder, FIM_TOKENS)
    run_stdio(functools.partial(scripted, folder))
