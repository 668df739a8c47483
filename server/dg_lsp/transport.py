"""Messages over a pair of byte streams, read and written by threads of their own.

The event loop never waits for the editor, and everything that has arrived is handed over at
once: a cancel that stands behind its request in the pipe stops it before it starts.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

_READ_BYTES = 1 << 16
_HEADER_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


def messages(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Bodies of the messages in a stream, up to its end; headers without a length are skipped."""
    buffer = bytearray()
    while True:
        while (end := buffer.find(_HEADER_END)) < 0:
            if not (data := read(_READ_BYTES)):
                return
            buffer += data
        length = _content_length(bytes(buffer[:end]))
        del buffer[: end + len(_HEADER_END)]
        if length is None:
            logger.warning("A message without Content-Length was skipped.")
            continue
        while len(buffer) < length:
            if not (data := read(_READ_BYTES)):
                return
            buffer += data
        yield bytes(buffer[:length])
        del buffer[:length]


def _content_length(header: bytes) -> int | None:
    for line in header.split(b"\r\n"):
        if line.lower().startswith(_LENGTH):
            value = line[len(_LENGTH) :].strip()
            return int(value) if value.isdigit() else None
    return None


class Inbox:
    """Hands messages from the reading thread to the event loop, all that there are at once."""

    def __init__(
        self,
        read: Callable[[int], bytes],
        handle: Callable[[bytes], None],
        at_end: Callable[[], None],
    ) -> None:
        self._read = read
        self._handle = handle
        self._at_end = at_end
        self._waiting: deque[bytes] = deque()
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begin to read, in a thread that does not keep the process alive."""
        threading.Thread(target=self._run, name="dg-lsp-reader", daemon=True).start()

    def _run(self) -> None:
        try:
            for body in messages(self._read):
                self._waiting.append(body)
                self._loop.call_soon_threadsafe(self._drain)
        except OSError as error:
            logger.info("The editor's stream broke (%s).", error)
        finally:
            # The loop may be gone already when the process ends on its own.
            try:
                self._loop.call_soon_threadsafe(self._at_end)
            except RuntimeError:
                return

    def _drain(self) -> None:
        while self._waiting:
            self._handle(self._waiting.popleft())


class Outbox:
    """Writes in order in a thread, so that an editor that does not read blocks nobody."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="dg-lsp-writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue bytes; pygls calls this once per message."""
        self._waiting.put(data)

    def close(self) -> None:
        """Nothing more will come."""
        self._waiting.put(None)

    def flush(self, seconds: float) -> None:
        """Close, and wait until all is written or the time is up."""
        self.close()
        self._thread.join(seconds)

    def _run(self) -> None:
        while (data := self._waiting.get()) is not None:
            try:
                self._write(data)
            except OSError as error:
                logger.info("The editor no longer reads (%s).", error)
                return
