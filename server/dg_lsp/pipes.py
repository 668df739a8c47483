"""What may be read from a pipe or a socket, and written to it, without waiting."""

from __future__ import annotations

import functools
import os
import select
import socket
import stat
from collections.abc import Callable


class Ready:
    """Whether a pipe or a socket may be read without waiting."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def __call__(self) -> bool:
        """Whether there is something to read, or its end."""
        return bool(self._poll.poll(0))

    @classmethod
    def of(cls, descriptor: int) -> Ready | None:
        """Of a descriptor; None where the system cannot tell."""
        return cls(descriptor) if hasattr(select, "poll") else None


def writer_now(descriptor: int) -> Callable[[bytes], int]:
    """A `write_now` for an Outbox: into a pipe what surely fits, into a socket what does.

    POSIX lets nobody wait who writes up to PIPE_BUF bytes into a pipe that poll says may be
    written; whatever else a descriptor is, nothing is written.
    """
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(kind) and hasattr(socket, "MSG_DONTWAIT"):
        return functools.partial(_sent, socket.socket(fileno=os.dup(descriptor)))
    if stat.S_ISFIFO(kind) and hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        return functools.partial(_piped, descriptor, poll)
    return lambda data: 0


def _sent(connection: socket.socket, data: bytes) -> int:
    try:
        return connection.send(data, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return 0


def _piped(descriptor: int, poll: select.poll, data: bytes) -> int:
    if len(data) > select.PIPE_BUF or not poll.poll(0):
        return 0
    return os.write(descriptor, data)
