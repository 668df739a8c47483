"""An engine that runs out of memory tries fewer candidates, says so, and goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from dg_engine.job import DoneKind, Frame, Role
from dg_engine.torch_engine import TorchEngine, fewer_candidates

from tests.engine_contract import frames_of
from tests.engine_fixtures import job, load_tiny

WIDE = {
    "canvas": [0] * 8 + list(range(60, 68)),
    "roles": bytes([Role.HOLE] * 8 + [Role.PIN] * 8),
    "widths": [1, 2, 4, 8],
}


def refusing(limit: int, error: Callable[[], Exception]) -> TorchEngine:
    """An engine whose memory is too small for more than `limit` canvases at once."""
    loaded = load_tiny()
    model = loaded.solver._model
    inner = model.decode

    def decode(*arguments, **options):
        canvases = next(a for a in arguments if isinstance(a, torch.Tensor))
        if canvases.shape[0] > limit:
            raise error()
        return inner(*arguments, **options)

    model.decode = decode
    return TorchEngine(loaded)


def end_of(frames: list[Frame]) -> tuple[DoneKind, str]:
    done = frames[-1].done
    assert done is not None
    return done.kind, done.message


ERRORS = {
    "a GPU's": lambda: torch.OutOfMemoryError("CUDA out of memory."),
    "a processor's": lambda: RuntimeError(
        "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."
    ),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("whose", ERRORS)
@pytest.mark.parametrize("fields", [WIDE, {"alternatives": 4}], ids=["widths", "alternatives"])
async def test_fewer_candidates_are_tried_and_that_is_said(
    whose: str, fields: dict[str, object], capfd: pytest.CaptureFixture[str]
) -> None:
    engine = refusing(1, ERRORS[whose])
    kind, message = end_of(await frames_of(engine, job(**fields)))
    assert kind is DoneKind.MAX_STEPS
    assert message == "The engine ran short of memory and tried fewer candidates."
    assert message in capfd.readouterr().err
    assert end_of(await frames_of(engine, job(id="next"))) == (DoneKind.MAX_STEPS, "")
    await engine.close()


@pytest.mark.asyncio
async def test_a_single_candidate_that_does_not_fit_is_one_sentence_and_no_end() -> None:
    engine = refusing(0, ERRORS["a GPU's"])
    kind, message = end_of(await frames_of(engine, job()))
    assert kind is DoneKind.ERROR
    assert message == "The engine ran out of memory; use a smaller model or shorter prompts."
    assert end_of(await frames_of(engine, job(id="next")))[0] is DoneKind.ERROR
    await engine.close()


@pytest.mark.asyncio
async def test_another_failure_is_not_taken_for_it() -> None:
    engine = refusing(0, lambda: RuntimeError("shape mismatch"))
    kind, message = end_of(await frames_of(engine, job()))
    assert kind is DoneKind.ERROR
    assert "shape mismatch" in message
    await engine.close()


def test_half_the_widths_are_kept_with_the_widest() -> None:
    tried = job(**WIDE)
    found = []
    while (tried := fewer_candidates(tried)) is not None:
        found.append(tried.widths)
    assert found == [[2, 8], [8]]
