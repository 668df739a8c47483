"""The remote engine keeps the contract, over HTTP with a `vllm serve` of its own."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest
import pytest_asyncio

pytest.importorskip("vllm", reason="vLLM is not installed; `make test-vllm` sets it up")

from dg_engine.engine import EngineError
from dg_engine.remote_engine import RemoteEngine, RemoteOptions

from tests.engine_contract import EngineContract, frames_of
from tests.engine_fixtures import job

STARTING_SECONDS = 600.0
KEY = "open sesame"


@pytest.fixture(scope="session")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    path.write_text(f"{KEY}\n")
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def address(checkpoint: Path):
    """A server with the plugin, which wants a key."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(checkpoint),
        "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--max-model-len", "160",
        "--max-num-seqs", "4", "--enforce-eager", "--skip-tokenizer-init", "--block-size", "16",
        "--scheduling-policy", "priority", "--api-key", KEY,
        "--limit-mm-per-prompt", '{"image": 0, "video": 0, "audio": 0}',
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(*command)
    try:
        end = asyncio.get_running_loop().time() + STARTING_SECONDS
        while True:
            try:
                reader = await asyncio.open_connection("127.0.0.1", port)
                reader[1].close()
                break
            except OSError:
                assert process.returncode is None, "the server did not start"
                assert asyncio.get_running_loop().time() < end, "the server takes too long"
                await asyncio.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


@pytest_asyncio.fixture(loop_scope="session")
async def engine(address: str, checkpoint: Path, key_file: Path):
    engine = await RemoteEngine.connect(address, checkpoint, RemoteOptions(key_file))
    yield engine
    await engine.close()


@pytest.mark.asyncio(loop_scope="session")
class TestRemoteEngine(EngineContract):
    """See above for the engine."""

    async def test_its_answers_are_those_of_the_engine_beside_it(self, engine, solver):
        from tests.vllm.test_parity import JOBS, assert_same, solved

        for name in ("plain", "raced widths", "two blocks", "a greedy line among them"):
            canvas_job = job(id=name, **JOBS[name])
            assert_same(await frames_of(engine, canvas_job), solved(solver, canvas_job))

    async def test_a_wrong_key_is_one_sentence(
        self, address: str, checkpoint: Path, tmp_path: Path
    ):
        wrong = tmp_path / "key"
        wrong.write_text("close sesame")
        with pytest.raises(EngineError, match="refuses the key") as caught:
            await RemoteEngine.connect(address, checkpoint, RemoteOptions(wrong))
        assert "\n" not in str(caught.value)
