"""How long a request waits for the next key before the engine is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from dg_engine.tokenizer import Tokenizer
from dg_lsp.completion import Completer
from dg_lsp.documents import Document
from dg_lsp.prompts import prompt_format_for
from dg_lsp.shown.debounce import LATE_SECONDS
from dg_lsp.shown.desk import Desk, Request

from tests.scripted_engine import ScriptedEngine
from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer

DOCUMENT = Document.of("file:///a.py", 1, "python", "x = \ny = 2\n")
LATENCY_MS = 200.0
WAIT_S = 0.05
"""Of an engine that takes as long and whose suggestions nobody has seen yet."""


@pytest.fixture
def completer(tmp_path: Path) -> Completer:
    tokenizer = Tokenizer(write_tokenizer(tmp_path, FIM_TOKENS))
    engine = ScriptedEngine(tokenizer, ["1"])
    return Completer(engine, tokenizer, prompt_format_for(tokenizer, Path("tiny")))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("read_at", "invoked", "waits"),
    [
        (None, False, [WAIT_S]),
        (10.0, False, [WAIT_S]),
        (9.98, False, [WAIT_S - 0.02]),  # it was prepared for 20 ms
        (9.9505, False, []),  # half a millisecond, of which a loop would make a whole one
        (9.9, False, []),
        (10.0, True, []),
    ],
)
async def test_the_wait_for_the_next_key_begins_with_this_one(
    completer: Completer, read_at: float | None, invoked: bool, waits: list[float]
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    desk = Desk(sleep, lambda: 10.0)
    desk.habits.answered(LATENCY_MS)
    place = Request(DOCUMENT, 0, 4, path="a.py", invoked=invoked, read_at=read_at)
    completion = await desk.ask(completer, place, 1_000)
    assert completion.insert == "1"
    assert waited == pytest.approx([seconds - LATE_SECONDS for seconds in waits])


@pytest.mark.asyncio
async def test_a_wait_ends_in_time_though_a_loop_rounds_it_up_and_up_again() -> None:
    loop = asyncio.get_running_loop()
    wait = 0.0599  # one millisecond less is 59 of them, and 60 for epoll

    async def waited() -> float:
        began = loop.time()
        await asyncio.sleep(wait - LATE_SECONDS)
        return loop.time() - began

    # A busy machine may hold any of them up.
    assert any([await waited() <= wait for _ in range(20)])
