"""A model that was trained to copy its prompt settles in a few steps, alike in both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

import torch
from dg_engine.job import CanvasJob, DoneKind, Role, Rule

from tests import copy_model
from tests.engine_contract import frames_of
from tests.vllm.conftest import options, solver_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
MOST_STEPS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained here, in about a minute on two cores."""
    folder = tmp_path_factory.mktemp("copy")
    copy_model.write(folder)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(folder: Path):
    from dg_engine.vllm_engine import VllmEngine

    engine = await VllmEngine.start(folder, options(max_model_len=96, canvas_length=None))
    yield engine
    await engine.close()


def copying(prompt: list[int], seed: int) -> CanvasJob:
    length = copy_model.LENGTH
    return CanvasJob(
        f"copy {seed}", prompt, [0] * length, bytes([Role.HOLE]) * length,
        rule=Rule.ENTROPY_BOUND, max_steps=20, entropy_bound=2.0, confidence=0.1, seed=seed,
    )  # fmt: skip


@pytest.mark.timeout(900)
async def test_it_settles_in_four_steps_with_the_same_answer(engine: Any, folder: Path):
    from dg_engine.job import MaskRule

    solver = solver_of(folder, MaskRule.SYMMETRIC)
    asked = copy_model.prompts(6, torch.Generator().manual_seed(99)).tolist()
    steps: list[int] = []
    for seed, prompt in enumerate(asked):
        job = copying(prompt, seed)
        found = (await frames_of(engine, job))[-1]
        with torch.inference_mode():
            expected = [frame for frame in solver.run(job, solver.clock()) if frame is not None][-1]
        assert found.done is not None
        assert found.done.kind is DoneKind.CONVERGED
        assert found.ids[0] == expected.ids[0] == prompt
        assert found.step == expected.step
        steps.append(found.step)
    assert max(steps) <= MOST_STEPS, steps
