"""A random checkpoint with the canvas and the room that benches ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkpoints import write_checkpoint


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_checkpoint(folder, canvas_length=64, max_position_embeddings=2048)
    return folder
