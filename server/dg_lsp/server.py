"""The server's entries: one editor over standard input and output, or over a loopback socket.

Importing this module is cheap; what speaks the protocol is imported when a server starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dg_lsp.engine_host import EngineFactory
    from dg_lsp.language_server import Server

LOOPBACK = "127.0.0.1"


def create_server(engine_factory: EngineFactory | None = None) -> Server:
    """A server that starts its engine by `engine_factory`, as a child process without one."""
    # The protocol's types are thousands of classes; collecting garbage while they are made would
    # find none and take a third of the start.
    collecting = gc.isenabled()
    gc.disable()
    try:
        from dg_lsp import language_server

        return language_server.create_server(engine_factory)
    finally:
        if collecting:
            gc.enable()


def run_stdio(make_server: Callable[[], Server] = create_server) -> None:
    """Serve an editor over standard input and output; ends the process."""
    _log_to_stderr()
    # The streams move to descriptors that nothing else knows, so that a stray print cannot
    # garble the protocol and no child process holds the pipes open.
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    read, write = functools.partial(os.read, read_fd), functools.partial(_write_all, write_fd)
    _serve_and_exit(make_server, read, write, read_fd, write_fd)


def run_socket(port: int, make_server: Callable[[], Server] = create_server) -> None:
    """Serve the first client that connects to a port of this machine; ends the process.

    Port 0 takes a free one; which one is said on standard error.
    """
    _log_to_stderr()
    with socket.create_server((LOOPBACK, port)) as listener:
        host, bound = listener.getsockname()
        print(f"Listening on {host}:{bound}.", file=sys.stderr, flush=True)
        connection, _ = listener.accept()
    descriptor = connection.fileno()
    _serve_and_exit(make_server, connection.recv, connection.sendall, descriptor, descriptor)


def _serve_and_exit(
    make_server: Callable[[], Server],
    read: Callable[[int], bytes],
    write: Callable[[bytes], object],
    read_fd: int,
    write_fd: int,
) -> None:
    async def main() -> None:
        server = make_server()
        from dg_lsp.idle import collect_when_idle
        from dg_lsp.language_server import serve
        from dg_lsp.pipes import Ready, writer_now

        # What was imported stays: to look through it for garbage takes 40 ms, now and then.
        gc.freeze()
        collect_when_idle()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # not on every platform
                loop.add_signal_handler(number, server.session.ended.set)
        status = await serve(server, read, write, Ready.of(read_fd), writer_now(write_fd))
        sys.stderr.flush()
        # Not sys.exit: that would wait for threads that read a dead pipe or a large file.
        os._exit(status)

    asyncio.run(main())


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _log_to_stderr() -> None:
    from dg_lsp.privacy import logs

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logs.PrivateFormatter())
    handler.addFilter(logs.is_news)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logs.set_level("warning")
