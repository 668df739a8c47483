"""A window's connection: messages in, and out as fast as the window reads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator

import msgspec

from dg_engine.daemon.messages import FromWindow, ToWindow, packed, unpack_from_window
from dg_engine.wire import HEADER, Progress, WireError, body_length

logger = logging.getLogger(__name__)

REST_SECONDS = 30.0
"""How long a window may take over the rest of a frame, or over reading what it was sent."""
MOST_BEHIND = 4_096
"""Messages that a window may leave unread, drafts not counted."""


class Window:
    """One connection, with what is still to be sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.name = ""
        self.pid = 0
        self._reader = reader
        self._writer = writer
        self._messages: OrderedDict[tuple[str, int], ToWindow] = OrderedDict()
        self._count = 0
        self._drafts: dict[str, tuple[str, int]] = {}
        self._waiting = asyncio.Event()
        self._ending = False
        self._writing = asyncio.create_task(self._write())

    def put(self, message: ToWindow) -> None:
        """Send a message; a newer draft takes the place of one that still waits."""
        self._count += 1
        key = ("message", self._count)
        if isinstance(message, Progress):
            job = message.frame.job
            self._messages.pop(self._drafts.pop(job, key), None)
            if message.frame.done is None:
                self._drafts[job] = key
        self._messages[key] = message
        self._waiting.set()
        if len(self._messages) - len(self._drafts) > MOST_BEHIND:
            logger.warning("A window reads too slowly and was let go.")
            self.cut()

    async def messages(self) -> AsyncIterator[FromWindow]:
        """What the window says, until it ends; raises WireError on anything else."""
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                header = await self._reader.readexactly(HEADER.size)
                length = body_length(header)
                try:
                    body = await asyncio.wait_for(self._reader.readexactly(length), REST_SECONDS)
                except TimeoutError:
                    raise WireError("Half a frame, and then nothing.") from None
                yield unpack_from_window(body)

    async def end(self) -> None:
        """Send what is left, and hang up."""
        self._ending = True
        self._waiting.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._writing), REST_SECONDS)
        self.cut()

    @property
    def is_ending(self) -> bool:
        """Whether nothing more is to be said than what waits."""
        return self._ending

    def cut(self) -> None:
        """Hang up now."""
        self._writing.cancel()
        self._writer.transport.abort()

    async def _write(self) -> None:
        try:
            while True:
                while not self._messages:
                    if self._ending:
                        return
                    self._waiting.clear()
                    await self._waiting.wait()
                key, message = self._messages.popitem(last=False)
                if isinstance(message, Progress) and self._drafts.get(message.frame.job) == key:
                    del self._drafts[message.frame.job]
                self._writer.write(packed(message))
                await asyncio.wait_for(self._writer.drain(), REST_SECONDS)
        except (OSError, TimeoutError):
            logger.info("A window does not read any more.")
            self._writer.transport.abort()
        except (WireError, msgspec.MsgspecError) as error:
            logger.error("A message could not be sent (%s).", error)
            self._writer.transport.abort()
