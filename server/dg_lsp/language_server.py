"""The language server itself: pygls with our protocol, our methods and one session."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, cast

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from dg_lsp.configuration import Configuration
from dg_lsp.engine_host import Backend, EngineFactory, chosen_engine
from dg_lsp.methods import IN_PLACE_OF_BUILTIN, METHODS
from dg_lsp.methods.execute_command import COMMANDS
from dg_lsp.pipes import Ready
from dg_lsp.protocol import Cancel, Protocol
from dg_lsp.session import Session
from dg_lsp.status import StatusListener
from dg_lsp.transport import Inbox, Outbox

if TYPE_CHECKING:
    from pygls.server import ServerErrors

NAME = "dg-lsp"
_FLUSH_SECONDS = 0.5
"""How long the last answers may take to be written once the session has ended."""


class Server(LanguageServer):
    """A pygls server with our protocol, and the session that its methods share."""

    def __init__(self, engine_factory: EngineFactory | None = None) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]  (pygls: *args, **kwargs)
            NAME,
            _version(),
            protocol_cls=Protocol,
            converter_factory=default_converter,
            # Every cell of every notebook: prose and other languages are context.
            notebook_document_sync=types.NotebookDocumentSyncOptions(
                notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")],
                save=True,
            ),
        )
        self.wire = cast("Protocol", self.protocol)
        self.session = Session(self.wire, engine_factory or self._chosen_engine)
        self.wire.experimental = self._experimental

    async def _chosen_engine(
        self, configuration: Configuration, listener: StatusListener
    ) -> Backend:
        return await chosen_engine(configuration, listener, self.session.editor.name)

    def _experimental(self) -> dict[str, bool]:
        """What the settings allow beyond the specification."""
        return {"copilotInlineEdit": True} if self.session.settings.server.next_edit else {}

    def report_server_error(self, error: Exception, source: ServerErrors) -> None:
        """Show that a handler failed by the kind of error: what it says may quote people's code."""
        if source is not FeatureRequestError:  # a request has its response
            name = type(error).__name__
            self.session.editor.warn(f"Something went wrong in dg-lsp ({name}); see its log.")


def create_server(engine_factory: EngineFactory | None = None) -> Server:
    """A server whose engine is started by `engine_factory` once a client has initialized it."""
    server = Server(engine_factory)
    for name in IN_PLACE_OF_BUILTIN:
        server.wire.drop_builtin(name)
    for method in METHODS:
        handler = functools.partial(method.handle, server.session)
        server.feature(method.name, method.options)(handler)
        if method.params is not None and not inspect.iscoroutinefunction(method.handle):
            server.wire.run_plain(method.name, handler)
        if method.params is not None:
            receive = method.on_receipt and functools.partial(method.on_receipt, server.session)
            server.wire.own(method.name, method.params, receive)
    server.wire.own(types.CANCEL_REQUEST, Cancel)
    for name in COMMANDS:
        # For the capabilities alone; the method runs them.
        server.command(name)(functools.partial(COMMANDS[name].run, server.session))
    return server


async def serve(
    server: Server,
    read: Callable[[int], bytes],
    write: Callable[[bytes], object],
    ready: Ready | None = None,
    write_now: Callable[[bytes], int] = lambda data: 0,
) -> int:
    """Serve one client until it leaves; the exit status that the specification asks for.

    With `ready` and `write_now` (`dg_lsp.pipes`) no thread stands between the editor and the
    event loop.
    """
    session = server.session
    outbox = Outbox(write, write_now)
    server.wire.set_writer(outbox)
    server.wire.outbox = outbox
    Inbox(read, server.wire.receive, session.ended.set, ready).start()
    await session.ended.wait()
    await session.close()
    outbox.flush(_FLUSH_SECONDS)
    return 0 if server.wire.was_shut_down else 1


def _version() -> str:
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "0"
