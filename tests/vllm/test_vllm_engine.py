"""The vLLM engine keeps the contract."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

from tests.engine_contract import EngineContract


@pytest.mark.asyncio(loop_scope="session")
class TestVllmEngine(EngineContract):
    """See conftest for the engine."""
