"""vLLM on the CPU: what it needs to start, a random checkpoint and one engine for all tests."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bench.gpu.cpu import SETTINGS

# Several engines run at once, each on one thread, on whichever core is free.
SIDE_BY_SIDE = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}

if find_spec("vllm") is not None:
    os.environ.update({**SETTINGS, **SIDE_BY_SIDE})


WAYS = ("one step at a time", "planned ahead")
"""Of scheduling; each has an engine that many tests share."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share an engine run in one process, one after another."""
    from xdist.scheduler import LoadScopeScheduling

    class ByEngine(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            named = [way for way in WAYS if f"[{way}" in nodeid]
            return named[0] if named else nodeid.split("::")[0]

    return ByEngine(config, log)


class Kept:
    """An AsyncLLM that outlives the engines which borrow it."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    def shutdown(self) -> None:
        """Nothing: others go on with it."""


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights that vLLM carries too: one size of heads, one scalar per layer."""
    from safetensors.torch import load_file, save_file

    from tests.checkpoints import write_checkpoint

    folder = tmp_path_factory.mktemp("vllm-random")
    write_checkpoint(
        folder, num_experts=4, top_k_experts=2, sliding_window=24, head_dim=32,
        global_head_dim=32, num_global_key_value_heads=2,
    )  # fmt: skip
    weights = load_file(folder / "model.safetensors")
    for name in list(weights):
        if name.startswith("model.encoder") and name.endswith("layer_scalar"):
            weights[name] = weights[
                name.replace("model.encoder.language_model", "model.decoder")
            ].clone()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=WAYS)
async def started(request: pytest.FixtureRequest, checkpoint: Path):
    """One engine for all tests of one way of scheduling; starting takes half a minute."""
    from dg_engine.vllm_engine import VllmEngine
    from vllm.engine.arg_utils import AsyncEngineArgs

    with pytest.MonkeyPatch.context() as patch:
        if request.param == "planned ahead":
            patch.setattr(AsyncEngineArgs, "create_engine_config", _planned_ahead)
        engine = await VllmEngine.start(
            checkpoint,
            options(),
        )
    yield engine
    await engine.close()


def options(**changed: Any) -> Any:
    """Small and exact."""
    from dg_engine.vllm_engine import VllmOptions

    small = VllmOptions(
        dtype="float32",
        max_model_len=160,
        max_num_seqs=4,
        max_num_batched_tokens=256,
        enforce_eager=True,
        extra={
            "block_size": 16,
            "worker_extension_cls": "tests.vllm.worker_probe.WorkerProbe",
        },
    )
    return small._replace(**changed)


def _planned_ahead(args: Any, *rest: Any, **options: Any) -> Any:
    """vLLM plans ahead on GPUs and switches it off on the CPU, where it works too."""
    from vllm.engine.arg_utils import EngineArgs

    config = EngineArgs.create_engine_config(args, *rest, **options)
    config.scheduler_config.async_scheduling = True
    return config


@pytest.fixture(scope="session")
def solver(checkpoint: Path):
    """The PyTorch engine's solver on the same weights, with vLLM's mask rule and our draws."""
    from dg_engine.job import MaskRule

    return solver_of(checkpoint, MaskRule.SYMMETRIC)


def solver_of(checkpoint: Path, mask_rule: Any) -> Any:
    """A solver that draws as the plugin does."""
    import torch
    from dg_engine.loader import load
    from dg_engine.prefix_cache import PrefixCache
    from dg_engine.solver import Solver
    from dg_engine.vllm_plugin.draws import HashedDraws

    cpu = torch.device("cpu")
    loaded = load(checkpoint, device=cpu, dtype=torch.float32, mask_rule=mask_rule)
    of = loaded.solver
    return Solver(
        of.model,
        eos=of.eos,
        line_breaks=of.line_breaks,
        special=frozenset(range(7)),
        cache=PrefixCache(2**20),
        draws=lambda seeds: HashedDraws(seeds, loaded.config.vocab_size, cpu),
    )


@pytest_asyncio.fixture(loop_scope="session")
async def engine(started: Any):
    """An engine of its own over the shared vLLM."""
    from dg_engine.vllm_engine import VllmEngine

    host = started.host
    engine = VllmEngine(
        Kept(started.llm), host.backend, host.limits, host.sets, await started.info()
    )
    yield engine
    await engine.close()
