"""Neovims for tests, in both versions, ended after the test."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editors.installs import installed_or_fail
from tests.editors.nvim_session import ROOT, VERSIONS, Nvim
from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer

TEXT = "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n"
"""Press `jA` and the cursor stands behind "return "."""


@pytest.fixture(scope="session", autouse=True)
def editors() -> Path:
    return installed_or_fail("nvim")


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"), FIM_TOKENS)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def scripted(tokenizer: Path, *answers: str, **script: Any) -> list[str]:
    """The command line of a server that answers as told."""
    module = [sys.executable, "-m", "tests.editors.nvim_server"]
    told = json.dumps({"answers": answers or ("a + b",), **script})
    return ["env", f"PYTHONPATH={ROOT}", *module, str(tokenizer), told]


Start = Callable[..., Nvim]


@pytest.fixture
def start(version: str, tokenizer: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts Neovim with a server that gives these answers, and opens `file.py` with TEXT."""
    started: list[Nvim] = []

    def run(
        *answers: str,
        text: str | bytes | None = TEXT,
        name: str = "file.py",
        before: str = "",
        script: dict[str, Any] | None = None,
        **options: Any,
    ) -> Nvim:
        server = scripted(tokenizer, *answers, **(script or {}))
        home = tmp_path / f"home{len(started)}"
        nvim = Nvim(version, home, server, before=before, **options)
        started.append(nvim)
        if text is not None:
            nvim.open(tmp_path / name, text)
        return nvim

    yield run
    for nvim in started:
        nvim.close()


def suggested(nvim: Nvim, keys: str = "jA") -> Nvim:
    """Press keys that lead to a suggestion, and wait for it."""
    nvim.type(keys)
    nvim.wait(nvim.visible, "a suggestion is shown")
    return nvim
