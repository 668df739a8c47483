"""One version in every place that says one."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VERSION = str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
EXTENSION = ROOT / "clients" / "vscode"


@pytest.mark.parametrize("name", ["package.json", "package-lock.json"])
def test_the_extension_has_the_servers_version(name: str) -> None:
    assert json.loads((EXTENSION / name).read_text())["version"] == VERSION


@pytest.mark.parametrize("page", [ROOT / "CHANGELOG.md", EXTENSION / "CHANGELOG.md"], ids=str)
def test_the_newest_entry_of_a_changelog_is_this_version(page: Path) -> None:
    newest = re.search(r"^## (\d\S*)", page.read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION
