"""What was answered once is not asked again, and a request waits no longer than it helps."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from dg_engine.job import CanvasJob, Done, DoneKind, Frame, Priority, Role
from dg_lsp.lines import Lines
from dg_lsp.runner import Answer
from dg_lsp.shown.debounce import MOST_MS, Habits, wait_ms
from dg_lsp.shown.memory import Memory, key_of
from dg_lsp.shown.prefetch import Ahead, as_if_taken
from dg_lsp.shown.warm import warm_job

JOB = CanvasJob(id="one", prompt=[1, 2], canvas=[0, 0, 7], roles=bytes([0, 0, 2]), seed=0)


def changed(**fields: object) -> CanvasJob:
    return msgspec.structs.replace(JOB, **fields)


class Asked:
    """An engine that counts, and answers when it is let."""

    def __init__(self, kind: DoneKind = DoneKind.CONVERGED) -> None:
        self.count = 0
        self.kind = kind
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self) -> Answer:
        self.count += 1
        await self.may_answer.wait()
        frame = Frame(JOB.id, 4, [[5, 6, 7]], forwards=9, ms={"steps": 3.0})
        return Answer(frame, Done(self.kind))


@pytest.mark.parametrize(
    "fields",
    [{"id": "two"}, {"deadline_ms": 9}, {"priority": Priority.PREFETCH}],
    ids=lambda fields: next(iter(fields)),
)
def test_a_key_leaves_out_what_does_not_decide_an_answer(fields: dict[str, object]) -> None:
    assert key_of(changed(**fields)) == key_of(JOB)


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": [1, 3]},
        {"canvas": [0, 0, 8]},
        {"roles": bytes([0, 0, 0])},
        {"widths": [1]},
        {"seed": 1},
        {"max_steps": 9},
        {"single_line": True},
        {"alternatives": 3},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_key_holds_what_decides_an_answer(fields: dict[str, object]) -> None:
    assert key_of(changed(**fields)) != key_of(JOB)


@pytest.mark.asyncio
async def test_the_same_job_is_asked_once_and_costs_nothing_the_second_time() -> None:
    memory, ask = Memory(), Asked()
    first = await memory.answer(JOB, ask)
    again = await memory.answer(changed(id="two", deadline_ms=100), ask)
    assert ask.count == 1
    assert first.frame is not None
    assert again.frame is not None
    assert (again.frame.ids, again.frame.forwards) == (first.frame.ids, 0)


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [DoneKind.DEADLINE, DoneKind.CANCELLED, DoneKind.ERROR])
async def test_an_answer_that_was_cut_short_is_not_remembered(kind: DoneKind) -> None:
    memory, ask = Memory(), Asked(kind)
    await memory.answer(JOB, ask)
    await memory.answer(JOB, ask)
    assert (ask.count, len(memory)) == (2, 0)


@pytest.mark.asyncio
async def test_noise_that_is_drawn_anew_is_never_remembered() -> None:
    memory, ask = Memory(), Asked()
    await memory.answer(changed(seed=None), ask)
    await memory.answer(changed(seed=None), ask)
    assert (ask.count, len(memory)) == (2, 0)


@pytest.mark.asyncio
async def test_the_memory_is_bounded_and_forgets_the_least_used_first() -> None:
    memory, ask = Memory(most=2), Asked()
    for prompt in ([1], [2], [1], [3], [1]):
        await memory.answer(changed(prompt=prompt), ask)
    assert (ask.count, len(memory)) == (3, 2)
    await memory.answer(changed(prompt=[2]), ask)
    assert ask.count == 4


@pytest.mark.asyncio
async def test_a_request_waits_for_the_prefetch_of_the_same() -> None:
    memory, ask = Memory(), Asked()
    ask.may_answer.clear()
    ahead = asyncio.ensure_future(memory.answer(changed(priority=Priority.PREFETCH), ask))
    await asyncio.sleep(0)
    request = asyncio.ensure_future(memory.answer(JOB, ask))
    await asyncio.sleep(0)
    ask.may_answer.set()
    assert (await request).frame == (await memory.answer(JOB, ask)).frame
    await ahead
    assert ask.count == 1


@pytest.mark.asyncio
async def test_a_request_whose_prefetch_was_stopped_asks_itself() -> None:
    memory, ask = Memory(), Asked()
    ask.may_answer.clear()
    ahead = asyncio.ensure_future(memory.answer(changed(priority=Priority.PREFETCH), ask))
    await asyncio.sleep(0)
    request = asyncio.ensure_future(memory.answer(JOB, ask))
    await asyncio.sleep(0)
    ahead.cancel()
    ask.may_answer.set()
    assert (await request).done.kind is DoneKind.CONVERGED
    assert ask.count == 2


@pytest.mark.parametrize(
    ("lines", "place", "text", "ahead"),
    [
        ("x = \ny\n", (0, 4), "a + b", ("x = a + b\ny\n", 0, 9)),
        ("f()\n", (0, 2), "a", ("f(a)\n", 0, 3)),
        ("if x:\n    \n", (1, 4), "a()\n    b()", ("if x:\n    a()\n    b()\n", 2, 7)),
        ("x = ", (0, 4), "a\n", ("x = a\n", 1, 0)),
        ("a\r\nb\r\n", (0, 1), "c\r\nd", ("ac\r\nd\r\nb\r\n", 1, 1)),
    ],
)
def test_the_document_as_if_a_suggestion_were_taken(
    lines: str, place: tuple[int, int], text: str, ahead: tuple[str, int, int]
) -> None:
    found = as_if_taken(Lines.of(lines), *place, text)
    assert found == Ahead(Lines.of(ahead[0]), *ahead[1:])
    assert found.lines.count == Lines.of(ahead[0]).count


WAITS: list[tuple[list[float], list[bool], float]] = [
    # latencies, outcomes, milliseconds
    ([], [], 0),
    ([], [False] * 9, 0),
    ([160], [], 40),
    ([160, 10, 900], [], 40),
    ([160], [True] * 6, 10),
    ([160], [False] * 6, 70),
    ([160], [True, False], 40),
    ([10], [], 0),
    ([45], [True] * 18, 0),
    ([45], [False] * 18, 21.375),
    ([5000], [False] * 20, MOST_MS),
]


@pytest.mark.parametrize(("latencies", "outcomes", "milliseconds"), WAITS)
def test_how_long_an_automatic_request_waits(
    latencies: list[float], outcomes: list[bool], milliseconds: float
) -> None:
    assert wait_ms(latencies, outcomes) == pytest.approx(milliseconds)


def test_only_the_newest_habits_count() -> None:
    habits = Habits()
    for _ in range(50):
        habits.answered(1000)
        habits.ended(taken=False)
    for _ in range(20):
        habits.answered(20)
        habits.ended(taken=True)
    assert habits.wait_seconds == 0


@pytest.mark.parametrize("seeds", [[4], [4, 5, 6, 7]])
def test_a_warm_job_starts_from_what_was_said_and_keeps_the_canvas(seeds: list[int]) -> None:
    cold = changed(canvas=[0, 7, 8], roles=bytes([0, 2, 2]), widths=[1, 2], alternatives=2)
    warm = warm_job(cold, seeds)
    width = max(3, len(seeds))
    assert warm.canvas == [*seeds, 7, 8][:width]
    assert list(warm.roles) == [*[Role.SEED] * len(seeds), Role.PIN, Role.PIN][:width]
    assert (warm.widths, warm.alternatives, warm.keep_seed_steps) == ([], 1, warm.max_steps)
    assert warm.prompt == cold.prompt
