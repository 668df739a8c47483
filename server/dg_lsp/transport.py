"""Messages over a pair of byte streams, read and written by threads of their own.

The event loop never waits for the editor, and what has arrived is handed over at once, as much as
a turn of the loop allows: a cancel that stands behind its request in the pipe stops it before it
starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

_READ_BYTES = 1 << 16
_HEADER_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"content-length:[ \t]*(\d+)[ \t]*(?:\r\n|$)", re.IGNORECASE)
_MAX_DIGITS = 9
_MAX_HEADER_BYTES = 1 << 16
"""What goes on for longer without an empty line is no header."""
MAX_MESSAGE_BYTES = 1 << 28
"""A longer message is not waited for: its length is taken for garbled."""

MAX_WAITING = 10_000
"""Messages that may be read ahead; then the editor's writes wait."""
TURN_SECONDS = 0.005
"""How long messages are handled before everything else gets its turn."""


def messages(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Bodies of the messages in a stream, up to its end.

    A header without a usable length is skipped, and so is everything up to the next header.
    """
    buffer = bytearray()
    while True:
        while (end := buffer.find(_HEADER_END)) < 0:
            # Kept is what may be the start of a header's end.
            if len(buffer) > _MAX_HEADER_BYTES:
                del buffer[: -_MAX_HEADER_BYTES // 2]
            if not (data := read(_READ_BYTES)):
                return
            buffer += data
        length = _content_length(bytes(buffer[:end]))
        del buffer[: end + len(_HEADER_END)]
        if length is None:
            logger.warning("A message without a usable Content-Length was skipped.")
            continue
        while len(buffer) < length:
            if not (data := read(_READ_BYTES)):
                return
            buffer += data
        yield bytes(buffer[:length])
        del buffer[:length]


def _content_length(header: bytes) -> int | None:
    """The last length given, wherever it stands in its line.

    Behind a message with a wrong length, the next header follows what is left of the body.
    """
    given: list[bytes] = _LENGTH.findall(header)
    digits = given[-1].lstrip(b"0") if given else None
    if digits is None or len(digits) > _MAX_DIGITS:
        return None
    length = int(digits or b"0")
    return length if length <= MAX_MESSAGE_BYTES else None


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
        self._waiting: deque[bytes | None] = deque()
        """Messages, and None at the end of the stream."""
        self._room = threading.Semaphore(MAX_WAITING)
        self._called = False
        """Whether the loop has been told of what waits."""
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begin to read, in a thread that does not keep the process alive."""
        threading.Thread(target=self._run, name="dg-lsp-reader", daemon=True).start()

    def _run(self) -> None:
        try:
            for body in messages(self._read_on):
                if not self._room.acquire(blocking=False):
                    self._tell()  # room is made by the loop alone
                    self._room.acquire()
                self._waiting.append(body)
        except OSError as error:
            logger.info("The editor's stream broke (%s).", error)
        finally:
            # The loop may be gone already when the process ends on its own.
            with contextlib.suppress(RuntimeError):
                self._waiting.append(None)
                self._tell()

    def _read_on(self, size: int) -> bytes:
        """Read more; before waiting for it, all that has been read is handed over at once."""
        self._tell()
        return self._read(size)

    def _tell(self) -> None:
        if self._waiting and not self._called:
            self._called = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        # Unset before the queue is looked at: what comes in between is seen here or told anew.
        self._called = False
        until = self._loop.time() + TURN_SECONDS
        try:
            while self._waiting:
                body = self._waiting.popleft()
                if body is None:
                    self._at_end()
                    return
                self._room.release()
                self._handle(body)
                if self._loop.time() >= until:
                    return
        finally:
            # A client that outruns us must not keep the loop from what it asked for.
            if self._waiting and not self._called:
                self._called = True
                self._loop.call_soon(self._drain)


class Outbox:
    """Writes in order in a thread, so that an editor that does not read blocks nobody."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._waiting: queue.SimpleQueue[bytes | str | None] = queue.SimpleQueue()
        self._newest: dict[str, bytes] = {}
        """What stands for each key in the queue."""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="dg-lsp-writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue bytes; pygls calls this once per message."""
        self._waiting.put(data)

    def write_newest(self, key: str, data: bytes) -> None:
        """Queue bytes in place of those of the same key that are not written yet."""
        with self._lock:
            waits = key in self._newest
            self._newest[key] = data
        if not waits:
            self._waiting.put(key)

    def close(self) -> None:
        """Nothing more will come."""
        self._waiting.put(None)

    def flush(self, seconds: float) -> None:
        """Close, and wait until all is written or the time is up."""
        self.close()
        self._thread.join(seconds)

    def _run(self) -> None:
        while (data := self._waiting.get()) is not None:
            if isinstance(data, str):
                with self._lock:
                    data = self._newest.pop(data)
            try:
                self._write(data)
            except OSError as error:
                logger.info("The editor no longer reads (%s).", error)
                return
