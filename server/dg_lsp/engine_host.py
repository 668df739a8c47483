"""The engine as the server sees it: started once, awaited by requests, replaced on new settings."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import operator
import os
from collections.abc import Awaitable, Callable
from importlib import metadata
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec
from dg_engine.choice import EngineKind
from dg_engine.engine import Engine, EngineError, EngineStatus
from dg_engine.tokenizer import Tokenizer

from dg_lsp.completion import Completer
from dg_lsp.configuration import Configuration
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.prompts.settings import InfillSettings
from dg_lsp.status import ModelState, ModelStatus, StatusListener

if TYPE_CHECKING:
    from dg_engine.client import LinkedEngine

CLOSE_SECONDS = 1.5
"""How long an engine may take to close before the server ends without it."""


class Backend(msgspec.Struct, frozen=True):
    """An engine that was started, and how to speak to its model."""

    engine: Engine
    tokenizer: Tokenizer
    prompt_format: PromptFormat
    set_focus: Callable[[bool | None], None] | None = None
    """Tells an engine that windows share whether the user looks at this one."""


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
        self._focused: bool | None = None
        self._configuration = Configuration()
        self._wanted: tuple[tuple[object, ...], InfillSettings] | None = None

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
        if _engine_of(old) != _engine_of(configuration):
            await self.close()
            self.start(configuration)

    def set_focus(self, focused: bool | None) -> None:
        """Whether the user looks at this window, for this engine and those after it.

        None where the editor does not know.
        """
        self._focused = focused
        self._tell_focus()

    def _tell_focus(self) -> None:
        if self._backend is not None and self._backend.set_focus is not None:
            self._backend.set_focus(self._focused)

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
        completer.settings = self._settings_for(configuration, completer)
        return completer

    def loaded(self, configuration: Configuration) -> Completer | None:
        """As `completer`, None while the model is not loaded, or where it cannot be."""
        loading = self._loading
        if loading is None or not loading.done() or loading.cancelled() or loading.exception():
            return None
        completer = copy.copy(loading.result())
        completer.settings = self._settings_for(configuration, completer)
        return completer

    def _settings_for(self, configuration: Configuration, completer: Completer) -> InfillSettings:
        """What a configuration wants of a model; the newest is remembered."""
        asked = configuration, completer.prompt_format, self._canvas_length
        if self._wanted is None or not all(map(operator.is_, self._wanted[0], asked)):
            wanted = configuration.infill(completer.prompt_format.settings)
            self._wanted = asked, wanted.within(self._canvas_length)
        return self._wanted[1]

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
            self._tell_focus()
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


def _engine_of(configuration: Configuration) -> tuple[object, ...]:
    """The settings that need another engine when they change."""
    shared = configuration.share_engine
    return configuration.model, configuration.threads, configuration.engine_choice, shared


def _name_of(model: str | None) -> str:
    """What a model is called before it is loaded."""
    from dg_engine.models import DEFAULT_MODEL, MODEL_VARIABLE

    named = model or os.environ.get(MODEL_VARIABLE, "").strip() or DEFAULT_MODEL
    return PurePath(named).name


def engine_command(
    folder: Path, configuration: Configuration, threads: int | None = None
) -> list[str]:
    """Command line of the engine's process; `threads` count more than the configuration's.

    Raises EngineError with one sentence for an engine that the settings leave incomplete.
    """
    from dg_engine.links import child_command

    choice = configuration.engine_choice
    choice.check()
    return [*child_command(folder, threads or configuration.threads, None), *choice.arguments()]


async def chosen_engine(
    configuration: Configuration, listener: StatusListener, window: str = ""
) -> Backend:
    """The engine that the settings ask for: shared by all windows, or a child of this process.

    `window` is what people call the editor.
    """
    from dg_engine.daemon.place import is_offered

    # A server elsewhere is shared already, and each window has a key of its own.
    is_remote = configuration.engine_choice.kind is EngineKind.REMOTE
    if is_remote or not configuration.share_engine or not is_offered():
        return await child_process(configuration, listener)
    from dg_engine.daemon.daemon import Limits
    from dg_engine.daemon.link import DaemonEngine
    from dg_engine.models import find_model

    folder = find_model(configuration.model)
    choice = configuration.engine_choice
    choice.check()
    engine = DaemonEngine(
        folder,
        version=metadata.version("dg-lsp"),
        name=window,
        threads=configuration.threads,
        choice=choice,
        limits=Limits(configuration.engine_unload_after_s, configuration.engine_exit_after_s),
        on_status=_relay(listener),
    )
    return await _backend(engine, folder)


async def child_process(configuration: Configuration, listener: StatusListener) -> Backend:
    """The engine as a child process of this one."""
    # Imported here so that the server answers initialize before it reads any of this.
    from dg_engine.client import EngineClient
    from dg_engine.models import find_model

    folder = find_model(configuration.model)
    command = engine_command(folder, configuration)
    return await _backend(EngineClient(folder, command=command, on_status=_relay(listener)), folder)


def _relay(listener: StatusListener) -> Callable[[EngineStatus], None]:
    told = ModelState.LOADING

    def relay(status: EngineStatus) -> None:
        # The first LOADING and READY are told by the host, which also checks the tokenizer; a model
        # that was let go is loaded again later.
        nonlocal told
        state, before = ModelState(status.state.value), told
        if state is ModelState.CLOSED or (state, before) == (ModelState.LOADING,) * 2:
            return
        if state is ModelState.LOADING and before is ModelState.RESTARTING:
            return  # that says more
        told = state
        message = status.message if state in (ModelState.RESTARTING, ModelState.FAILED) else ""
        listener(ModelStatus(state, message, retry_in_s=status.retry_in_s))

    return relay


async def _backend(client: LinkedEngine, folder: Path) -> Backend:
    """Begin to reach an engine, and read what is needed to speak to its model."""
    from dg_lsp.prompts import prompt_format_for

    await client.start()
    try:
        # Large vocabularies take a second to read, so not on the event loop.
        tokenizer = await asyncio.to_thread(Tokenizer, folder)
        prompt_format = prompt_format_for(tokenizer, folder)
        return Backend(client, tokenizer, prompt_format, client.set_focus)
    except BaseException:
        await client.close()
        raise
