"""Messages over a pair of byte streams, which the event loop never waits for.

Where the loop can tell that a stream may be read or written without waiting, it does so itself: a
thread in between would have to be scheduled twice for each key, beside an engine that keeps every
processor busy. Where it cannot tell, or the editor does not read, threads do the waiting.

What has arrived is handed over at once, as much as a turn of the loop allows: a cancel that stands
behind its request in the pipe stops it before it starts.
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

from dg_lsp.pipes import Ready

logger = logging.getLogger(__name__)

READ_BYTES = 1 << 16
_HEADER_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"content-length:[ \t]*(\d+)[ \t]*(?:\r\n|$)", re.IGNORECASE)
_MAX_DIGITS = 9
_MAX_HEADER_BYTES = 1 << 16
"""What goes on for longer without an empty line is no header."""
MAX_MESSAGE_BYTES = 1 << 28
"""A longer message is not waited for: its length is taken for garbled."""

READS_AT_ONCE = 16
"""How often the loop reads before it handles what it has."""
MAX_WAITING = 10_000
"""Messages that may be read ahead; then the editor's writes wait."""
TURN_SECONDS = 0.005
"""How long messages are handled before everything else gets its turn."""


class Framing:
    """Takes bytes as they come and gives the bodies of the messages in them.

    A header without a usable length is skipped, and so is everything up to the next header.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None
        """Of the body that comes next, once its header was read."""

    def feed(self, data: bytes) -> None:
        """What was read."""
        self._buffer += data

    def next(self) -> bytes | None:
        """The next body, None when more must be read first."""
        buffer = self._buffer
        while self._length is None:
            end = buffer.find(_HEADER_END)
            if end < 0:
                # Kept is what may be the start of a header's end.
                if len(buffer) > _MAX_HEADER_BYTES:
                    del buffer[: -_MAX_HEADER_BYTES // 2]
                return None
            self._length = _content_length(bytes(buffer[:end]))
            del buffer[: end + len(_HEADER_END)]
            if self._length is None:
                logger.warning("A message without a usable Content-Length was skipped.")
        if len(buffer) < self._length:
            return None
        body = bytes(buffer[: self._length])
        del buffer[: self._length]
        self._length = None
        return body


def messages(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Bodies of the messages in a stream, up to its end."""
    framing = Framing()
    while True:
        while (body := framing.next()) is not None:
            yield body
        if not (data := read(READ_BYTES)):
            return
        framing.feed(data)


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
    """Hands messages to the event loop, all that there are at once.

    With a `ready` the loop itself reads, as long as it says that reading will not wait; without
    one a thread does.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        handle: Callable[[bytes], None],
        at_end: Callable[[], None],
        ready: Ready | None = None,
    ) -> None:
        self._read = read
        self._ready = ready
        self._framing = Framing()
        self._watching = False
        """Whether the loop tells when there is something to read."""
        self._ended = False
        self._handle = handle
        self._at_end = at_end
        self._waiting: deque[bytes | None] = deque()
        """Messages, and None at the end of the stream."""
        self._room = threading.Semaphore(MAX_WAITING)
        self._called = False
        """Whether the loop has been told of what waits."""
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begin to read; a thread that does so does not keep the process alive."""
        if not self._watch():
            self._ready = None
            threading.Thread(target=self._run, name="dg-lsp-reader", daemon=True).start()

    def _watch(self) -> bool:
        """Have the loop tell of what arrives, if it can."""
        if self._ready is None:
            return False
        try:
            self._loop.add_reader(self._ready.descriptor, self._arrived)
        except (NotImplementedError, OSError):  # a loop for sockets alone; a file
            return False
        self._watching = True
        return True

    def _unwatch(self) -> None:
        if self._watching and self._ready is not None:
            self._loop.remove_reader(self._ready.descriptor)
        self._watching = False

    def _arrived(self) -> None:
        """Read what there is, up to READS_AT_ONCE times, and handle it."""
        assert self._ready is not None, "somebody told us"
        for _ in range(READS_AT_ONCE):
            try:
                data = self._read(READ_BYTES)
            except OSError as error:
                logger.info("The editor's stream broke (%s).", error)
                data = b""
            if not data:
                self._unwatch()
                self._ended = True
                self._waiting.append(None)
                break
            self._framing.feed(data)
            while (body := self._framing.next()) is not None:
                self._waiting.append(body)
            if len(self._waiting) >= MAX_WAITING:
                self._unwatch()  # until some of it is handled
                break
            if not self._ready():
                break
        if not self._called:
            self._drain()

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
                if self._ready is None:
                    self._room.release()
                elif not (self._watching or self._ended) and len(self._waiting) < MAX_WAITING // 2:
                    self._watch()
                self._handle(body)
                if self._loop.time() >= until:
                    return
        finally:
            # A client that outruns us must not keep the loop from what it asked for.
            if self._waiting and not self._called:
                self._called = True
                self._loop.call_soon(self._drain)


class Outbox:
    """Writes in order, so that an editor that does not read blocks nobody.

    What `write_now` takes is written at once: it returns how many bytes it wrote without waiting.
    The rest is left to a thread, and so is all that comes behind it until that is written.
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        write_now: Callable[[bytes], int] = lambda data: 0,
    ) -> None:
        self._write = write
        self._write_now = write_now
        self._left = 0
        """What the thread has not written yet."""
        self._waiting: queue.SimpleQueue[bytes | str | None] = queue.SimpleQueue()
        self._newest: dict[str, bytes] = {}
        """What stands for each key in the queue."""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="dg-lsp-writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Write bytes, or queue them; pygls calls this once per message."""
        with self._lock:
            self._put(data)

    def write_newest(self, key: str, data: bytes) -> None:
        """Write bytes in place of those of the same key that are not written yet."""
        with self._lock:
            if key in self._newest:
                self._newest[key] = data
            elif self._left:
                self._newest[key] = data
                self._queue(key)
            else:
                self._put(data)

    def _put(self, data: bytes) -> None:
        if not self._left:
            data = data[self._written(data) :]
        if data:
            self._queue(data)

    def _written(self, data: bytes) -> int:
        """How much could be written at once."""
        try:
            return self._write_now(data)
        except OSError:
            return 0  # the thread finds out, and ends

    def _queue(self, item: bytes | str) -> None:
        self._left += 1
        self._waiting.put(item)

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
            with self._lock:
                self._left -= 1
