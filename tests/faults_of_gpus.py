"""Faults: a GPU is asked for, and there is no vLLM, no driver, or no GPU that answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from dg_engine.daemon.link import DaemonEngine
from dg_engine.engine import EngineState
from dg_engine.job import DoneKind

from tests.checkpoints import write_checkpoint
from tests.daemon_world import World, frames_of, job
from tests.fault_table import fault, last_of
from tests.real_server import LOAD_SECONDS, SERVE, kinds, normals, settings_for
from tests.server_fixtures import CURSOR, TEXT
from tests.wire_client import WireClient

OTHERWISE = 'or set "engine" to "torch".'
NO_VLLM = f"vLLM is not installed; install vLLM 0.26 to 0.33, {OTHERWISE}"
NO_DRIVER = (
    "vLLM finds no GPU on this machine; install or repair its driver until `nvidia-smi` lists it, "
    + OTHERWISE
)
UNSPECIFIED = '''
class Platform:
    """What vLLM has where nothing that it is built for answers."""

    device_type = ""

current_platform = Platform()
'''
"""vllm/platforms.py: tests/vllm/test_no_gpu.py has vLLM itself say so, where it is installed."""
LOST = """
import sys
# As the driver says of a GPU that fails at its first use.
if "dg_engine.child" in sys.orig_argv:
    import torch
    torch.cuda.is_available = lambda: True
"""


@contextlib.contextmanager
def found_first(folder: Path, files: dict[str, str]) -> Iterator[None]:
    """What every Python that is started meanwhile imports first."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


def model_of(w: World) -> Path:
    """A model that any engine may try to load."""
    model = w.folder / "model"
    model.mkdir()
    write_checkpoint(model, canvas_length=64)
    return model


def is_refused(what: str, sentence: str, files: dict[str, str]) -> None:
    @fault(
        f'"engine" is "vllm": {what}',
        "status: what to do; requests are answered empty; once it is set to “torch” all is well",
    )
    async def _(w: World) -> float:
        if find_spec("vllm") is not None:
            pytest.skip("vLLM is installed")
        model = model_of(w)
        with found_first(w.folder / "first", files):
            client = await WireClient.run("-c", SERVE)
            try:
                settings = settings_for(model, engine="vllm")
                await client.initialize(initializationOptions=settings)
                client.open(TEXT)
                await client.until_said("didChangeStatus")
                began = time.monotonic()
                await client.until(lambda: kinds(client)[-1:] == ["Error"], LOAD_SECONDS)
                lasted = time.monotonic() - began
                report = (await client.request("dg/status", None))["result"]
                assert (report["state"], report["message"]) == ("failed", sentence)
                assert await client.complete(*CURSOR, kind=1) == []
                last = (await client.request("dg/status", None))["result"]["lastReason"]
                assert (last["why"], last["message"]) == ("engine_down", sentence)
                # It was tried once, and nothing tries it again by itself.
                assert kinds(client).count("Error") == 1
                assert "restarting" not in {s["state"] for s in client.said("didChangeStatus")}
                found = [(e.state, e.message) for e in (await w.status()).engines]
                assert found == [("failed", sentence)]
                shown = [said["message"] for said in client.said("window/showMessage")]
                assert shown == [sentence]
                settings = settings_for(model)
                client.notify("workspace/didChangeConfiguration", {"settings": settings})
                await client.until(lambda: normals(client) > 0, LOAD_SECONDS)
                answer = await client.answer(client.ask_completion(*CURSOR, kind=1))
                assert "items" in answer["result"]
                report = (await client.request("dg/status", None))["result"]
                assert report["state"] == "ready"
            finally:
                await client.close()
        return lasted


is_refused("vLLM is not installed", NO_VLLM, {})
is_refused(
    "the machine has no driver, or its GPU is lost",
    NO_DRIVER,
    {
        "vllm/__init__.py": "",
        "vllm/platforms.py": UNSPECIFIED,
        "vllm-0.32.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n",
    },
)


@fault('"engine" is "torch": the GPU is lost before it starts', "nothing; the processor is used")
async def _(w: World) -> float:
    with found_first(w.folder / "first", {"sitecustomize.py": LOST}):
        window = DaemonEngine(model_of(w), version="1.0", name="a", threads=1)
        w.windows.append(window)
        await window.start()
        async with asyncio.timeout(LOAD_SECONDS):
            assert (await window.info()).device == "cpu"
        began = time.monotonic()
        one = job("asked", canvas=[0] * 8, roles=bytes(8), steps=2)
        assert last_of(await frames_of(window, one)).kind in (
            DoneKind.MAX_STEPS,
            DoneKind.CONVERGED,
        )
        lasted = time.monotonic() - began
    assert window.status.state is EngineState.READY
    return lasted
