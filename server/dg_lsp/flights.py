"""Requests in flight: one suggestion per document, and all of them ended at shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator


class Flight:
    """One request being worked on."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self.task = task
        self.superseded = False
        """Whether a newer request for the same document made this one pointless."""
        self.ended_because = ""
        """Why we ended it ourselves; its answer says so."""

    def end(self, reason: str) -> None:
        """Stop the work; the request is answered with the reason."""
        if not self.ended_because:
            self.ended_because = reason
            self.task.cancel()


class Flights:
    """Every request that runs as a task of its own."""

    def __init__(self, on_count: Callable[[int], None]) -> None:
        self._on_count = on_count
        self._all: set[Flight] = set()
        self._newest: dict[str, Flight] = {}
        self._of_documents: dict[Flight, str] = {}

    def __len__(self) -> int:
        return len(self._all)

    def supersede(self, key: str) -> None:
        """End the flight of a key: a newer request for the same is answered already."""
        older = self._newest.pop(key, None)
        if older is not None:
            older.superseded = True
            older.task.cancel()

    @contextlib.contextmanager
    def begin(self, key: str | None = None, *, document: str | None = None) -> Generator[Flight]:
        """Count the current task; with a `key`, end the older flight of that key.

        With a `document` (a normalised URI) the flight ends when that document is closed.
        """
        task = asyncio.current_task()
        assert task is not None, "handlers run as tasks"
        flight = Flight(task)
        if key is not None:
            self.supersede(key)
            self._newest[key] = flight
        if document is not None:
            self._of_documents[flight] = document
        self._all.add(flight)
        self._on_count(len(self._all))
        try:
            yield flight
        finally:
            self._all.discard(flight)
            self._of_documents.pop(flight, None)
            if key is not None and self._newest.get(key) is flight:
                del self._newest[key]
            self._on_count(len(self._all))

    def end_document(self, document: str, reason: str) -> None:
        """End every flight that works on a document which was closed."""
        for flight, uri in list(self._of_documents.items()):
            if uri == document:
                flight.end(reason)

    async def end_all(self) -> None:
        """Cancel every flight but the caller's own, and wait until each is answered."""
        own = asyncio.current_task()
        tasks = [flight.task for flight in self._all if flight.task is not own]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
