"""What a job makes of the drafts of its requests, whatever way these went through the scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from dg_engine.canvas_backend import Limits
from dg_engine.canvas_engine import CanvasEngine
from dg_engine.job import DoneKind, Frame
from dg_engine.vllm_plugin.drafts import Code, Draft
from dg_engine.vllm_plugin.request import CanvasRequest, Kind
from dg_engine.vllm_plugin.vocabulary import VocabularySets

from tests.engine_fixtures import job

pytestmark = pytest.mark.asyncio
WIDTH = 16


def draft(code: Code, ids: list[int], block: int) -> Draft:
    size = len(ids)
    return Draft(1, code, 0, 2, 0, ids, [0.5] * size, [-0.25] * size, block)


class Scripted:
    """A backend that sends the next of its scripts to each request of a kind."""

    def __init__(self, **scripts: list[list[Draft]]) -> None:
        self._scripts = {Kind[kind]: list(drafts) for kind, drafts in scripts.items()}

    async def run(
        self, prompt: list[int], request: CanvasRequest, *, name: str, priority: int
    ) -> AsyncIterator[Draft]:
        for each in self._scripts[Kind(request.kind)].pop(0):
            yield each


async def answer(backend: Scripted, **fields: Any) -> Frame:
    sets = VocabularySets(frozenset({1}), frozenset(), frozenset())
    engine = CanvasEngine(backend, Limits(WIDTH, 300, 160), sets)
    last = [frame async for frame in engine.submit(job(**fields))][-1]
    assert last.done is not None
    assert last.done.kind is not DoneKind.ERROR, last.done.message
    return last


async def test_a_block_that_was_preempted_before_its_commit_counts_once():
    drafts = [
        draft(Code.BLOCK_MAX_STEPS, [50] * WIDTH, 0),
        draft(Code.BLOCK_MAX_STEPS, [51] * WIDTH, 0),
        draft(Code.GOES_ON, [60] * WIDTH, 1),
        draft(Code.MAX_STEPS, [61] * WIDTH, 1),
    ]
    open_canvas = {"canvas": [0] * WIDTH, "roles": bytes(WIDTH), "blocks": 2, "may_end": False}
    last = await answer(Scripted(CANVAS=[drafts]), **open_canvas)
    assert last.ids == [[51] * WIDTH + [61] * WIDTH]


@pytest.mark.parametrize(
    "scripts",
    [
        [[(Code.GOES_ON, 70, 0), (Code.GOES_ON, 71, 1), (Code.MAX_STEPS, 72, 2)]],
        [
            [
                (Code.GOES_ON, 70, 0),
                (Code.GOES_ON, 70, 0),
                (Code.GOES_ON, 71, 1),
                (Code.MAX_STEPS, 72, 2),
            ]
        ],
        [
            [(Code.GOES_ON, 70, 0), (Code.LOST, 9, 1)],
            [(Code.GOES_ON, 70, 0), (Code.GOES_ON, 71, 1), (Code.MAX_STEPS, 72, 2)],
        ],
    ],
    ids=["undisturbed", "begun again", "lost and asked again"],
)
async def test_a_greedy_line_holds_each_token_once(scripts: list[list[tuple[Code, int, int]]]):
    sent = [[draft(code, [token], place) for code, token, place in script] for script in scripts]
    fields = {"canvas": [0], "roles": b"\0", "widths": [3], "causal_candidate": True}
    last = await answer(Scripted(GREEDY=sent), causal_sure=-1e9, **fields)
    assert last.ids == [[70, 71, 72]]
