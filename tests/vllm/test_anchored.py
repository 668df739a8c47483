"""With the anchored backend, vLLM's frames are those of the mask rule that transformers has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

from dg_engine.job import MaskRule
from dg_engine.vllm_engine import VllmEngine

from tests.engine_contract import frames_of
from tests.engine_fixtures import job
from tests.vllm.conftest import options, solver_of
from tests.vllm.test_parity import JOBS, assert_same, solved

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def anchored(checkpoint: Path):
    engine = await VllmEngine.start(checkpoint, options(mask_rule=MaskRule.ANCHORED))
    yield engine
    await engine.close()


@pytest.fixture(scope="module")
def anchored_solver(checkpoint: Path) -> Any:
    return solver_of(checkpoint, MaskRule.ANCHORED)


@pytest.mark.parametrize("name", ["pinned", "two blocks", "a greedy line among them"])
async def test_frames_are_the_torch_engines(anchored: Any, anchored_solver: Any, name: str):
    canvas_job = job(id=name, prompt=list(range(20, 70)), **JOBS[name])
    assert_same(await frames_of(anchored, canvas_job), solved(anchored_solver, canvas_job))


async def test_the_two_rules_differ_once_the_window_is_passed(
    anchored_solver: Any, checkpoint: Path
):
    canvas_job = job(prompt=list(range(20, 70)), **JOBS["plain"])
    symmetric = solver_of(checkpoint, MaskRule.SYMMETRIC)
    one, other = (solved(s, canvas_job)[0].entropy for s in (anchored_solver, symmetric))
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 0.01
