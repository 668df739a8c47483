"""The real server for `bench.latency.through`, which also says when it did what.

Every step of a keystroke is noted with the time of `time.perf_counter`, which processes of one
machine share, and so is every collection of garbage. `bench/stages` hands over what was noted.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from dg_engine.job import CanvasJob, Priority
from dg_lsp import server as entry
from dg_lsp import transport
from dg_lsp.completion import Completer
from dg_lsp.language_server import Server
from dg_lsp.methods import inline_completion
from dg_lsp.protocol import Protocol
from dg_lsp.results import Completion
from dg_lsp.runner import Answer
from dg_lsp.shown.memory import Memory

SAMPLE = "--sample"
"""Note every millisecond what each thread does, in a run of its own: it takes time itself."""
_SAMPLE_SECONDS = 0.001
_DEPTH = 6

noted: list[tuple[str, float, float]] = []
"""What, from when, until when."""


def _note(name: str, began: float) -> None:
    noted.append((name, began, time.perf_counter()))


def _watch_collections() -> None:
    began = 0.0

    def told(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        else:
            _note(f"gc{info['generation']}", began)

    gc.callbacks.append(told)


def _kind(body: bytes) -> str:
    if b'"textDocument/didChange"' in body:
        return "change"
    return "request" if b'"textDocument/inlineCompletion"' in body else ""


def _watch_messages() -> None:
    """From the bytes that were read to the handler."""
    receive = Protocol.receive

    def received(self: Protocol, body: bytes) -> None:
        began = time.perf_counter()
        receive(self, body)
        if name := _kind(body):
            _note(f"receive {name}", began)

    Protocol.receive = received
    if hasattr(transport, "Framing"):
        take = transport.Framing.next

        def taken(self: Any) -> bytes | None:
            body = take(self)
            if body is not None and (name := _kind(body)):
                _note(f"read {name}", time.perf_counter())
            return body

        transport.Framing.next = taken
        return
    read_all = transport.messages  # versions that read in a thread alone

    def told(read: Callable[[int], bytes]) -> Iterator[bytes]:
        for body in read_all(read):
            if name := _kind(body):
                _note(f"read {name}", time.perf_counter())
            yield body

    transport.messages = told


def _watch_answers() -> None:
    """From the handler to the pipe."""
    found, items, write_all = inline_completion._found, inline_completion._items, entry._write_all

    async def answered(*given: Any) -> Any:
        began = time.perf_counter()
        try:
            return await found(*given)
        finally:
            _note("find", began)

    def listed(*given: Any) -> Any:
        began = time.perf_counter()
        try:
            return items(*given)
        finally:
            _note("items", began)

    def written(descriptor: int, data: bytes) -> None:
        began = time.perf_counter()
        write_all(descriptor, data)
        _note("write answer" if b'"items"' in data else "write other", began)

    def piped(descriptor: int, poll: Any, data: bytes) -> int:
        began = time.perf_counter()
        count = write_now(descriptor, poll, data)
        if count:
            _note("write answer" if b'"items"' in data else "write other", began)
        return count

    if importlib.util.find_spec("dg_lsp.pipes"):  # older versions write in a thread alone
        pipes = importlib.import_module("dg_lsp.pipes")
        write_now, pipes._piped = pipes._piped, piped
    inline_completion._found = answered
    inline_completion._items = listed
    entry._write_all = written


def _watch_jobs() -> None:
    """What is asked of the engine, and the prompts that are made for it."""
    complete_at, answer = Completer.complete_at, Memory.answer
    began: ContextVar[float] = ContextVar("began")

    async def completed(self: Completer, *given: Any, **named: Any) -> Completion:
        began.set(time.perf_counter())
        return await complete_at(self, *given, **named)

    async def answered(self: Memory, job: CanvasJob, *given: Any) -> Answer:
        is_ahead = job.priority is Priority.PREFETCH
        _note("prepare ahead" if is_ahead else "prepare", began.get())
        return await answer(self, job, *given)

    Completer.complete_at = completed
    Memory.answer = answered


def _sample() -> None:
    own, main = threading.get_ident(), threading.main_thread().ident
    while True:
        time.sleep(_SAMPLE_SECONDS)
        now = time.perf_counter()
        for ident, frame in sys._current_frames().items():
            if ident == own:
                continue
            at, where = frame, []
            while at is not None and len(where) < _DEPTH:
                where.append(f"{Path(at.f_code.co_filename).name}:{at.f_code.co_name}")
                at = at.f_back
            who = "main" if ident == main else "other"
            noted.append((f"{who} {' < '.join(where)}", now, now))


def watch() -> None:
    """Note what happens from now on."""
    _watch_collections()
    _watch_messages()
    _watch_answers()
    _watch_jobs()


def hand_over(server: Server) -> None:
    """Have a server say what was noted, to whom asks for `bench/stages`."""

    @server.feature("bench/stages")
    async def stages(params: Any) -> list[tuple[str, float, float]]:
        taken = noted[:]
        del noted[: len(taken)]
        return taken


def main() -> None:
    """Serve."""
    watch()
    server = entry.create_server()
    hand_over(server)
    if SAMPLE in sys.argv[1:]:
        threading.Thread(target=_sample, daemon=True).start()
    entry.run_stdio(lambda: server)


if __name__ == "__main__":
    main()
