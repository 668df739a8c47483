"""What holds for every test: settings of whoever runs the tests count in none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def settings_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the user's configuration, empty."""
    folder = tmp_path_factory.mktemp("config")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        yield folder
