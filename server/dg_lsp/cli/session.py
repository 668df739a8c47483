"""The engine and the completer that a command works with, from start to close."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dg_lsp.cli.errors import CliError, ExitCode
from dg_lsp.cli.settings import settings_in

if TYPE_CHECKING:
    from dg_engine.job import EngineInfo

    from dg_lsp.completion import Completer


class Session(NamedTuple):
    """A completer over a running engine."""

    completer: Completer
    info: EngineInfo
    start_ms: float
    """From the start of the engine process to the loaded model."""


def usable_model(name: str | None, *, here: bool = False) -> Path:
    """A checkpoint folder whose files are whole, as far as sizes tell; raises CliError.

    Without `name` the settings name it. `here` says that it is run on this machine whatever
    engine they choose.
    """
    from dg_engine.engine import EngineError
    from dg_engine.models import find_model, verify_model

    settings = None if here and name else settings_in(Path.cwd()).server
    try:
        folder = find_model(name or (settings.model if settings else None))
    except EngineError as error:
        raise CliError(str(error)) from None
    # A server elsewhere holds the weights.
    elsewhere = not here and settings is not None and settings.engine == "remote"
    problems = [] if elsewhere else verify_model(folder, digests=False)
    if problems:
        raise CliError(problems[0])
    return folder


@contextlib.asynccontextmanager
async def open_session(folder: Path, *, threads: int | None = None) -> AsyncGenerator[Session]:
    """Start the engine as a child and wait for its model; raises CliError when it fails."""
    from dg_engine.client import EngineClient
    from dg_engine.engine import EngineError
    from dg_engine.tokenizer import Tokenizer

    from dg_lsp.completion import Completer
    from dg_lsp.engine_host import engine_command
    from dg_lsp.prompts import prompt_format_for

    try:
        tokenizer = Tokenizer(folder)
        prompt_format = prompt_format_for(tokenizer, folder)
        command = engine_command(folder, settings_in(Path.cwd()).server, threads)
    except EngineError as error:
        raise CliError(str(error)) from None
    started = time.perf_counter()
    client = EngineClient(folder, command=command)
    try:
        with _loading(folder):
            await client.start()
            info = await client.info()
        start_ms = (time.perf_counter() - started) * 1000
        settings = prompt_format.settings.within(info.canvas_length)
        yield Session(Completer(client, tokenizer, prompt_format, settings), info, start_ms)
    except EngineError as error:
        raise CliError(str(error), ExitCode.ENGINE_FAILED) from None
    finally:
        await client.close()


@contextlib.contextmanager
def _loading(folder: Path) -> Generator[None]:
    """Say in a terminal that the model is being loaded; large ones take a while."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"Loading {folder.name}"):
        yield


async def describe_engine(folder: Path) -> str:
    """What the engine says of itself once it has loaded the model; raises CliError."""
    async with open_session(folder) as opened:
        info = opened.info
        return (
            f"{info.model}, {info.parameters / 1e6:.1f} M parameters, {info.dtype} "
            f"on {info.device}, loaded in {opened.start_ms / 1000:.1f} s"
        )


def idle_completer(folder: Path) -> Completer:
    """A completer whose engine never starts: good for `explain` alone; raises CliError."""
    from dg_engine.client import EngineClient
    from dg_engine.engine import EngineError
    from dg_engine.model_config import read_config
    from dg_engine.tokenizer import Tokenizer

    from dg_lsp.completion import Completer
    from dg_lsp.prompts import prompt_format_for

    try:
        tokenizer = Tokenizer(folder)
        prompt_format = prompt_format_for(tokenizer, folder)
        settings = prompt_format.settings.within(read_config(folder).canvas_length)
        return Completer(EngineClient(folder), tokenizer, prompt_format, settings)
    except EngineError as error:
        raise CliError(str(error)) from None
