"""The real server over a random checkpoint, with the engine's processes that belong to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkpoints import write_checkpoint
from tests.wire_client import WireClient

SERVE = "from dg_lsp.server import run_stdio; run_stdio()"
LOAD_SECONDS = 60


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder, canvas_length=64)
    return folder


def settings_for(checkpoint: Path, **more: object) -> dict[str, object]:
    """What runs a checkpoint on one thread, however busy the machine is."""
    return {"model": str(checkpoint), "threads": 1, "invokedDeadlineMs": 60_000, **more}


def kinds(client: WireClient) -> list[str]:
    """How serious each status was that a client was told, in their order."""
    return [status["kind"] for status in client.said("didChangeStatus")]


def normals(client: WireClient) -> int:
    """How often a client was told that all is well."""
    return kinds(client).count("Normal")
