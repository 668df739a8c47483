"""An editor that types a recorded session into a language server and watches its ghost text.

After each key it sends the change, gives up the request before, and asks again; it draws only
answers to its newest request, as editors that cancel do.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from dg_lsp.bench.client import Client, Request
from dg_lsp.bench.records import COMPLETION, JOB, CompletionRecord, JobRecord
from dg_lsp.bench.score import repeats_suffix
from dg_lsp.bench.sessions import (
    AcceptPolicy,
    Buffer,
    Delete,
    Insert,
    Move,
    Session,
    typed_later,
)
from dg_lsp.bench.shown import Snapshot, Suggestion, misfit, position_at, read_suggestion
from dg_lsp.bench.tally import Tally
from dg_lsp.languages import language_of

INLINE_COMPLETION = "textDocument/inlineCompletion"
AUTOMATIC = 2
PATIENCE_SECONDS = 10.0
"""How long an answer is waited for when nothing else is left to do."""
_STATUS = "didChangeStatus"


class Pace(msgspec.Struct, frozen=True):
    """How fast the author is: `speed` 2 halves every pause; a patient one awaits each answer."""

    speed: float = 1.0
    patient: bool = False


class Player:
    """Plays one session; use `play`."""

    def __init__(self, client: Client, session: Session, pace: Pace) -> None:
        self._client = client
        self._session = session
        self._pace = pace
        self._uri = f"file:///project/{session.path}"
        self._buffer = Buffer(session.text)
        self._version = 1
        self._snapshots = {1: Snapshot(session.text, 0)}
        self._asked: dict[Request, int] = {}
        self._newest: Request | None = None
        self._shown: Suggestion | None = None
        self._rest: str | None = None
        self._least: int | None = None
        self._completions: list[CompletionRecord] = []
        self._last_job = 0.0
        """When the newest job for a request started."""
        self._status = ""
        self.tally = Tally()

    async def play(self) -> Tally:
        """Type the whole session; raises ServerEnded."""
        self._client.on_notification = self._told
        self._client.notify(
            "textDocument/didOpen",
            {
                "textDocument": {
                    "uri": self._uri,
                    "languageId": language_of(self._session.path),
                    "version": 1,
                    "text": self._session.text,
                }
            },
        )
        events = self._session.events
        loop = asyncio.get_running_loop()
        index, before_ms, due = 0, 0, loop.time()
        while index < len(events):
            at_ms = events[index].at_ms
            due += (at_ms - before_ms) / 1e3 / self._pace.speed
            before_ms = at_ms
            if self._pace.patient:
                await self._settled()
            else:
                await asyncio.sleep(max(0.0, due - loop.time()))
            index = self._step(index) + 1
            before_ms = events[index - 1].at_ms
            await self._client.drain()
        await self._settled()
        await self._count_answers()
        self._client.notify("textDocument/didClose", {"textDocument": {"uri": self._uri}})
        return self.tally

    def _step(self, index: int) -> int:
        """Do one event, or take the suggestion for it; the last event that this stands for."""
        event = self._session.events[index]
        match event:
            case AcceptPolicy(min_chars=least):
                self._least = least
            case Move():
                self._buffer.apply(event)
                self._give_up()
            case Insert() | Delete():
                taken = self._take(index)
                if taken is not None:
                    return taken
                self._foresee(event)
                self.tally.keys += 1
                self.tally.typed_chars += len(event.text) if isinstance(event, Insert) else 0
                before = Snapshot(self._buffer.text, self._buffer.cursor)
                change = self._buffer.apply(event)
                assert change is not None, "keys change the text"
                self._send(before, *change)
            case _:
                pass
        return index

    def _take(self, index: int) -> int | None:
        """Accept what is shown if it is what the author types next."""
        shown, events = self._shown, self._session.events
        if shown is None or self._least is None:
            return None
        for text in dict.fromkeys((shown.text, shown.text.partition("\n")[0])):
            if len("".join(text.split())) < self._least:
                continue
            wanted = Buffer(self._buffer.text, self._buffer.cursor)
            wanted.replace(shown.start, shown.end, text)
            last = typed_later(events, index, self._buffer, wanted.text, wanted.cursor)
            if last is None:
                continue
            self.tally.kept += 1
            self.tally.kept_chars += len(text) - (shown.end - shown.start)
            saved = events[index : last + 1]
            self.tally.saved_keys += sum(isinstance(e, Insert | Delete) for e in saved)
            before = Snapshot(self._buffer.text, self._buffer.cursor)
            self._buffer.replace(shown.start, shown.end, text)
            self._rest = None
            if shown.command is not None:
                self._client.send("workspace/executeCommand", shown.command)
            self._send(before, shown.start, shown.end, text)
            return last
        return None

    def _foresee(self, event: Insert | Delete) -> None:
        """What should be shown after a key that agrees with the text shown."""
        self._rest = None
        shown = self._shown
        if shown is None or not isinstance(event, Insert) or shown.start != shown.end:
            return
        rest = shown.text.removeprefix(event.text)
        if shown.text != rest and rest:
            self.tally.typed_through += 1
            self._rest = rest

    def _send(self, before: Snapshot, start: int, end: int, text: str) -> None:
        """Tell of a change and ask for a suggestion behind it."""
        self._version += 1
        self._snapshots[self._version] = Snapshot(self._buffer.text, self._buffer.cursor)
        change = {
            "range": {
                "start": position_at(before.text, start),
                "end": position_at(before.text, end),
            },
            "text": text,
        }
        self._client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self._uri, "version": self._version},
                "contentChanges": [change],
            },
        )
        self._give_up()
        self.tally.asked += 1
        request = self._client.send(
            INLINE_COMPLETION,
            {
                "textDocument": {"uri": self._uri},
                "position": position_at(self._buffer.text, self._buffer.cursor),
                "context": {"triggerKind": AUTOMATIC},
            },
        )
        self._asked[request] = self._version
        self._newest = request
        self._completions.clear()
        request.answer.add_done_callback(lambda _: self._answered(request))

    def _give_up(self) -> None:
        """The request and the text of before are of no use any more."""
        self._shown = None
        if self._newest is not None and not self._newest.answer.done():
            self.tally.overtaken += 1
            self._client.cancel(self._newest)
        self._newest = None

    def _answered(self, request: Request) -> None:
        if request.answer.cancelled() or request.answer.exception() is not None:
            return
        answer = request.answer.result()
        newest = request is self._newest
        version = self._asked[request]
        suggestion = read_suggestion(answer.result, self._snapshots, version, self._version)
        fault = suggestion if isinstance(suggestion, str) else ""
        if isinstance(suggestion, Suggestion):
            fault = misfit(suggestion, self._snapshots, version, self._version if newest else None)
        if fault:
            self.tally.stale += 1
            self.tally.faults.append(f"{self._session.name}, version {version}: {fault}")
        if not newest:
            self.tally.late += isinstance(suggestion, Suggestion)
            return
        self._time(request, answer.at)
        if isinstance(suggestion, Suggestion) and not fault:
            self._show(suggestion, request)
        elif not fault:
            self.tally.silent(answer.error or self._reason(request))

    def _show(self, suggestion: Suggestion, request: Request) -> None:
        self.tally.shown += 1
        self._shown = suggestion
        following = self._buffer.text[suggestion.end :]
        self.tally.repeats += repeats_suffix(suggestion.text, following)
        if self._last_job < request.at:
            self.tally.engine_free += 1
        if self._rest is not None and suggestion.text != self._rest:
            self.tally.flickers += 1

    def _time(self, request: Request, at: float) -> None:
        self.tally.spent("answer", (at - request.at) * 1e3)
        own = self._completion_for(request)
        if own is None:
            return
        self.tally.spent("receive", (own.started - request.at) * 1e3)
        self.tally.spent("return", (at - own.ended) * 1e3)
        for stage, ms in own.ms.items():
            if stage != "total":
                self.tally.spent(stage, ms)

    def _reason(self, request: Request) -> str:
        own = self._completion_for(request)
        if own is not None:
            return (
                own.reason or "The server kept its text back: rejected here before, or overtaken."
            )
        return self._status or "The server gave no reason."

    def _completion_for(self, request: Request) -> CompletionRecord | None:
        """The first since the request; later ones prefetch what may be asked for next."""
        return next((told for told in self._completions if told.started >= request.at), None)

    def _told(self, method: str, params: Any, at: float) -> None:
        if method == JOB:
            job = msgspec.convert(params, JobRecord)
            if job.prefetch:
                self.tally.prefetch_jobs += 1
                self.tally.prefetch_forwards += job.forwards
            else:
                self._last_job = job.started
                self.tally.jobs += 1
                self.tally.forwards += job.forwards
        elif method == COMPLETION:
            self._completions.append(msgspec.convert(params, CompletionRecord))
        elif method == _STATUS:
            self._status = str(cast("dict[str, Any]", params).get("message", ""))

    async def _settled(self) -> None:
        """Wait for the answer to the newest request, if there is one."""
        if self._newest is not None:
            await asyncio.wait([self._newest.answer], timeout=PATIENCE_SECONDS)
            await asyncio.sleep(0)  # its callback runs

    async def _count_answers(self) -> None:
        waiting = [request.answer for request in self._asked if not request.answer.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_SECONDS)
        for request, version in self._asked.items():
            count = self._client.answers.get(request.id, 0)
            if count != 1:
                self.tally.unanswered += 1
                self.tally.faults.append(
                    f"{self._session.name}, version {version}: answered {count} times"
                )
