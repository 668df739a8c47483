"""The engine as the server sees it: started once, awaited by requests, replaced on new settings."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
from collections.abc import Awaitable, Callable
from pathlib import PurePath

import msgspec
from dg_engine.engine import Engine, EngineError
from dg_engine.tokenizer import Tokenizer

from dg_lsp.completion import Completer
from dg_lsp.configuration import Configuration
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.status import ModelState, ModelStatus, StatusListener

CLOSE_SECONDS = 1.5
"""How long an engine may take to close before the server ends without it."""


class Backend(msgspec.Struct, frozen=True):
    """An engine that was started, and how to speak to its model."""

    engine: Engine
    tokenizer: Tokenizer
    prompt_format: PromptFormat


EngineFactory = Callable[[Configuration, StatusListener], Awaitable[Backend]]
"""Starts an engine; raises EngineError when it cannot. It need not wait for the model."""


class EngineHost:
    """Holds at most one engine at a time."""

    def __init__(self, factory: EngineFactory, listener: StatusListener) -> None:
        self._factory = factory
        self._listener = listener
        self._loading: asyncio.Task[Completer] | None = None
        self._backend: Backend | None = None
        self._canvas_length = 0
        self._configuration = Configuration()

    def start(self, configuration: Configuration) -> None:
        """Begin to load; returns at once."""
        self._configuration = configuration
        self._listener(ModelStatus(ModelState.LOADING, name=_name_of(configuration.model)))
        self._loading = asyncio.ensure_future(self._load(configuration))
        # A failure is told through the listener; nobody need be waiting for it.
        self._loading.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def configure(self, configuration: Configuration) -> None:
        """Put other settings in force, in another engine where they need one."""
        if self._loading is None:
            return
        old, self._configuration = self._configuration, configuration
        if (old.model, old.threads) != (configuration.model, configuration.threads):
            await self.close()
            self.start(configuration)

    async def completer(self, configuration: Configuration) -> Completer:
        """The completer for what is asked under these settings, once the model is loaded.

        All share one engine and one memory. Raises EngineError when the model cannot be loaded.
        """
        loading = self._loading
        if loading is None:
            raise EngineError("The engine is closed; start the server again.")
        try:
            # Shielded: a request that is cancelled while it waits must not end the loading.
            completer = copy.copy(await asyncio.shield(loading))
        except asyncio.CancelledError:
            if loading.cancelled():
                raise EngineError("The engine was replaced while the request waited.") from None
            raise
        wanted = configuration.infill(completer.prompt_format.settings)
        completer.settings = wanted.within(self._canvas_length)
        return completer

    async def close(self) -> None:
        """End the engine, within CLOSE_SECONDS even when it hangs."""
        loading, self._loading = self._loading, None
        if loading is not None and not loading.done():
            loading.cancel()
            await asyncio.wait([loading], timeout=CLOSE_SECONDS)
        backend, self._backend = self._backend, None
        if backend is not None:
            with contextlib.suppress(TimeoutError, EngineError):
                await asyncio.wait_for(backend.engine.close(), CLOSE_SECONDS)

    async def _load(self, configuration: Configuration) -> Completer:
        try:
            backend = await self._factory(configuration, self._listener)
            self._backend = backend
            info = await backend.engine.info()
            if info.tokenizer_digest != backend.tokenizer.digest:
                raise EngineError(
                    f"The engine runs {info.model} with another tokenizer than the server; "
                    "restart the server."
                )
        except EngineError as error:
            self._listener(ModelStatus(ModelState.FAILED, str(error)))
            raise
        except Exception as error:
            message = f"The engine did not start ({error}); see the log."
            self._listener(ModelStatus(ModelState.FAILED, message))
            raise EngineError(message) from error
        self._canvas_length = info.canvas_length
        self._listener(ModelStatus(ModelState.READY, name=info.model))
        return Completer(backend.engine, backend.tokenizer, backend.prompt_format)


def _name_of(model: str | None) -> str:
    """What a model is called before it is loaded."""
    from dg_engine.models import DEFAULT_MODEL, MODEL_VARIABLE

    named = model or os.environ.get(MODEL_VARIABLE, "").strip() or DEFAULT_MODEL
    return PurePath(named).name


async def child_process(configuration: Configuration, listener: StatusListener) -> Backend:
    """The engine as a child process of this one, the default."""
    # Imported here so that the server answers initialize before it reads any of this.
    from dg_engine.client import EngineClient, EngineStatus
    from dg_engine.models import find_model

    from dg_lsp.prompts import prompt_format_for

    def relay(status: EngineStatus) -> None:
        # LOADING and READY are told by the host, which also checks the tokenizer.
        state = ModelState(status.state.value)
        if state in (ModelState.RESTARTING, ModelState.FAILED, ModelState.READY):
            message = status.message if state is not ModelState.READY else ""
            listener(ModelStatus(state, message, retry_in_s=status.retry_in_s))

    folder = find_model(configuration.model)
    client = EngineClient(folder, threads=configuration.threads, on_status=relay)
    await client.start()
    try:
        # Large vocabularies take a second to read, so not on the event loop.
        tokenizer = await asyncio.to_thread(Tokenizer, folder)
        return Backend(client, tokenizer, prompt_format_for(tokenizer, folder))
    except BaseException:
        await client.close()
        raise
