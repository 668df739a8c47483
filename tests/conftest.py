"""What holds for every test: neither settings of whoever runs them nor a busy machine count."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from dg_engine.daemon.link import quit_daemon
from dg_engine.daemon.place import Place

# How long one example takes tells how busy the machine is.
hypothesis.settings.register_profile("dg-lsp", deadline=None)
hypothesis.settings.load_profile("dg-lsp")


@pytest.fixture(scope="session", autouse=True)
def settings_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the user's configuration, empty."""
    folder = tmp_path_factory.mktemp("config")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def runtime_home() -> Iterator[Path]:
    """The folder of shared engines: none but ours are met, and none of ours stays."""
    folder = Path(tempfile.mkdtemp(prefix="dg-tests-"))  # sockets' paths are short
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder
    asyncio.run(quit_daemon(Place(folder / "dg-lsp")))
    shutil.rmtree(folder, ignore_errors=True)
