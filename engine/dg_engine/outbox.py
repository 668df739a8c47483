"""Frames on their way to a reader that may be slow: of each job only the newest draft waits."""

from __future__ import annotations

import threading
from collections import OrderedDict

from dg_engine.job import Frame
from dg_engine.wire import Progress, Reply


class Outbox:
    """A queue between the threads that produce messages and the one that writes them.

    A draft replaces the draft of the same job that still waits; the last frame of a job replaces
    it too and is never dropped. So a reader that stalls costs bounded memory per job.
    """

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._messages: OrderedDict[tuple[str, str | int], Reply] = OrderedDict()
        self._count = 0
        self._closed = False

    def put(self, message: Reply) -> None:
        """Queue any message but a frame, in order."""
        with self._ready:
            self._count += 1
            self._messages["message", self._count] = message
            self._ready.notify()

    def put_frame(self, frame: Frame) -> None:
        """Queue a frame in place of the job's waiting draft."""
        with self._ready:
            self._messages.pop(("job", frame.job), None)
            self._count += 1
            key = ("message", self._count) if frame.done is not None else ("job", frame.job)
            self._messages[key] = Progress(frame)
            self._ready.notify()

    def take(self) -> Reply | None:
        """The oldest message; waits for one, None once closed and empty."""
        with self._ready:
            while not self._messages:
                if self._closed:
                    return None
                self._ready.wait()
            return self._messages.popitem(last=False)[1]

    def close(self) -> None:
        """Let `take` end once everything is written."""
        with self._ready:
            self._closed = True
            self._ready.notify()

    def __len__(self) -> int:
        with self._ready:
            return len(self._messages)
