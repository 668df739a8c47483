"""The answer behind a suggestion, asked for as if it were taken already."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from dg_lsp.lines import Lines, body_of, ending_of, split_lines
from dg_lsp.shown.offer import Fate, Offer

PAUSE_SECONDS = 0.01
"""How long nothing must have been typed before the work begins: the suggestion's answer goes first,
and so do keys that follow at once. To prepare a job takes the event loop some milliseconds."""


class Ahead(NamedTuple):
    """A document in which a suggestion is taken, and the cursor behind it."""

    lines: Lines
    line: int
    column: int


def as_if_taken(lines: Lines, line: int, column: int, text: str) -> Ahead:
    """The document with `text` inserted at a place."""
    whole, ending = body_of(lines[line]), ending_of(lines[line])
    new = split_lines(whole[:column] + text + whole[column:] + ending)
    if ending:
        new.pop()  # the empty line behind the last break is the line that follows already
    typed = split_lines(text)
    breaks = len(typed) - 1
    end = len(typed[-1]) + (0 if breaks else column)
    return Ahead(lines.replaced(line, line + 1, new), line + breaks, end)


class Prefetch:
    """At most one answer that is being prepared, for one offer."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._task: asyncio.Task[object] | None = None
        self._pausing: Callable[[], Awaitable[object]] | None = None
        """The work that has not begun."""
        self.number = 0
        """The offer that it is for."""

    @property
    def running(self) -> bool:
        """Whether an answer is being prepared."""
        return self._task is not None and not self._task.done()

    def begin(self, number: int, work: Callable[[], Awaitable[object]]) -> None:
        """Prepare the answer behind an offer, in place of any other, in a moment."""
        self.cancel()
        self.number = number
        self._pausing = work
        self._task = asyncio.ensure_future(self._after_pause(work))
        # Nobody waits for it: what went wrong is found out by the request that needs it.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _after_pause(self, work: Callable[[], Awaitable[object]]) -> object:
        await self._sleep(PAUSE_SECONDS)
        self._pausing = None
        return await work()

    def follow(self, offer: Offer | None) -> None:
        """Go on only while the document is on its way to the text that was assumed."""
        on_the_way = offer is not None and offer.alone and offer.fate in (Fate.OPEN, Fate.TAKEN)
        if not on_the_way:
            self.cancel()
        elif self._pausing is not None:
            self.begin(self.number, self._pausing)

    def cancel(self) -> None:
        """Stop; the engine is told."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._pausing = None
