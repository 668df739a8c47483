"""One editor's session: its documents, its settings, its engine and its requests in flight."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterator

from dg_engine.engine import EngineError

from dg_lsp.ahead import looked_through
from dg_lsp.completion import Completer
from dg_lsp.configuration import Configuration, Settings
from dg_lsp.configuration.watching import watch
from dg_lsp.context.keeper import Keeper
from dg_lsp.documents import DocumentStore
from dg_lsp.editor import Channel, Editor
from dg_lsp.engine_host import EngineFactory, EngineHost
from dg_lsp.flights import Flights
from dg_lsp.idle import Idle, in_pieces
from dg_lsp.next_edit.desk import NextEdits
from dg_lsp.notebooks import NotebookStore
from dg_lsp.positions import Encoding
from dg_lsp.previews import Previews
from dg_lsp.privacy import logs
from dg_lsp.privacy.gate import Gate
from dg_lsp.privacy.rules import Decision
from dg_lsp.shown.desk import Desk
from dg_lsp.status import ModelState, ModelStatus, StatusBoard
from dg_lsp.uris import names_path, normalised, root_of, shown_path

logger = logging.getLogger(__name__)

PARENT_SECONDS = 1.0
"""How often the editor's process is looked for."""


class Session:
    """What the methods share."""

    def __init__(self, channel: Channel, engine_factory: EngineFactory) -> None:
        self.editor = Editor(channel)
        self.documents = DocumentStore()
        self.notebooks = NotebookStore(self.documents.get)
        self.encoding = Encoding.UTF16
        self.settings = Settings()
        self.gate = Gate()
        """What may be read."""
        self.status = StatusBoard(self.editor.tell_status, self.editor.tell_report, soon=_next_turn)
        self.flights = Flights(self._in_flight)
        self.idle = Idle(lambda: len(self.flights) > 0, _later)
        """What is done while no request is in flight."""
        self.previews = Previews(self.editor.tell_preview, lambda: self.encoding)
        self.desk = Desk()
        """What was suggested and what became of it."""
        self.next_edits = NextEdits()
        """What was edited, and which edits were proposed after it."""
        self.context = Keeper(self.documents)
        """What else of the workspace may help."""
        self.engine = EngineHost(engine_factory, self._model_changed)
        self.accepted = 0
        """Suggestions that the user took."""
        self.ended = asyncio.Event()
        """Set when the process should end."""
        self._opened = False
        self._models: asyncio.Queue[ModelStatus] = asyncio.Queue()
        self._said_of_model = ""
        self._background: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Begin the work that the editor's first `initialized` allows: load the model."""
        if self._opened:
            return
        self._opened = True
        self.in_background(self._follow_loading())
        self.engine.start(self.settings.server)
        self.context.start()
        self.in_background(watch(lambda: self.settings.files, self.reload_settings))

    def configuration_of(self, uri: str) -> Configuration:
        """The settings that count for a document."""
        return self.settings.of(root_of(self._file_of(uri), self.editor.roots))

    def may_complete(self, uri: str) -> Decision:
        """Whether to complete and edit in a document, and in the notebook that it is a cell of."""
        of_notebook = self.gate.may_complete(self._file_of(uri))
        return self.gate.may_complete(uri) if of_notebook.allowed else of_notebook

    def shown_path(self, uri: str) -> str:
        """How a document is named to a model; a cell as its notebook."""
        return shown_path(self._file_of(uri), self.editor.roots)

    async def completer(self, configuration: Configuration, limit_ms: int) -> Completer:
        """The completer, once the model is loaded; raises EngineError after `limit_ms`."""
        if (loaded := self.engine.loaded(configuration)) is not None:
            return loaded
        try:
            async with asyncio.timeout(limit_ms / 1e3):
                return await self.engine.completer(configuration)
        except TimeoutError:
            raise EngineError("The model is still loading; ask again in a moment.") from None

    def look_ahead(self, uri: str, line: int = 0) -> None:
        """Have a document looked through, so that a first request at any place of it is quick."""
        self.idle.put(normalised(uri), in_pieces(self._look_ahead(uri, line)))

    async def set_roots(self, roots: list[str]) -> None:
        """These folders are the workspace from now on; what can be none is left out."""
        self.editor.roots = [root for root in roots if names_path(root)]
        self.settings.set_folders(self.editor.roots)
        await self._configure()

    async def set_client_settings(self, given: object) -> None:
        """These are the editor's settings from now on."""
        await self._settings_after(lambda: self.settings.set_client(given))

    async def reload_settings(self) -> None:
        """A settings file may have changed."""
        await self._settings_after(self.settings.reload)

    async def _settings_after(self, change: Callable[[], None]) -> None:
        """Put the settings in force as they are after `change`, if they are others."""
        before = self.settings.state
        change()
        if self.settings.state != before:
            logger.info("The settings changed.")
            await self._configure()

    async def _configure(self) -> None:
        """Put the settings in force, with a new engine when they name another."""
        settings, roots = self.settings, self.editor.roots
        privacy = {root: settings.privacy(root) for root in roots}
        self.gate = Gate(roots, settings.privacy(None), privacy)
        self.context.configure(roots, self.gate)
        self.idle.clear()  # what may be read is another matter now
        self.desk.forget()
        self.next_edits.forget()
        logs.set_level(settings.server.log_level)
        self.status.set_problems(settings.problems)
        for problem in settings.problems:
            logger.warning("%s", problem)
            # window/showMessage is one of the few messages that may precede initialize's response.
            self.editor.warn(problem)
        self._look_ahead_everywhere()
        await self.engine.configure(settings.server)

    async def close(self) -> None:
        """End every request, then the engine."""
        self.desk.prefetch.cancel()
        self.context.close()
        await self.flights.end_all()
        for task in self._background:
            task.cancel()
        await self.engine.close()

    def watch_parent(self, process_id: int | None) -> None:
        """End the session when the process that started the server is gone (LSP, processId).

        Its pipes usually tell at once, unless another process inherited them.
        """
        if process_id is not None and os.name == "posix":
            self.in_background(self._watch(process_id))

    def in_background(self, work: Coroutine[object, object, None]) -> None:
        """Run work that no request waits for."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _file_of(self, uri: str) -> str:
        """The URI of what people know as the file: of a cell, its notebook's."""
        notebook = self.notebooks.holding(uri)
        return uri if notebook is None else notebook.uri

    def _in_flight(self, count: int) -> None:
        self.status.set_in_flight(count)
        if not count:
            self.idle.resume()

    def _look_ahead_everywhere(self) -> None:
        for document in self.documents:
            self.look_ahead(document.uri)

    def _look_ahead(self, uri: str, line: int) -> Iterator[None]:
        document, configuration = self.documents.get(uri), self.configuration_of(uri)
        completer = self.engine.loaded(configuration)  # we are told again when there is one
        if document is None or completer is None or not configuration.enabled:
            return
        if self.may_complete(uri).allowed:
            yield from looked_through(document.lines, line, completer.prompt_format)

    def _model_changed(self, model: ModelStatus) -> None:
        said = f"The model is {model.state}. {model.message}".rstrip()
        if said != self._said_of_model:  # that it is ready is told again with its name
            logger.info("%s", said)
        self._said_of_model = said
        self.status.set_model(model)
        if model.state is ModelState.READY:
            self._look_ahead_everywhere()
        if model.state is ModelState.FAILED:
            self.editor.warn(self.status.status.message)
        self._models.put_nowait(model)

    async def _watch(self, process_id: int) -> None:
        while _is_alive(process_id):  # noqa: ASYNC110 - no event tells of another's end
            await asyncio.sleep(PARENT_SECONDS)
        self.ended.set()

    async def _follow_loading(self) -> None:
        while True:
            await self.editor.follow_loading(await self._models.get())


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it exists but is somebody else's
    return True


def _later(seconds: float, work: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, work)


def _next_turn(work: Callable[[], None]) -> None:
    """Do work behind all that the event loop has to do already, such as writing an answer."""
    asyncio.get_running_loop().call_later(0, work)
