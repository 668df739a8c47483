"""docs/dependencies.md, the lock files and what is installed say the same."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_house import load_script

ROOT = Path(__file__).resolve().parents[1]
LOOKED_AT = {
    *("0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0"),
    *("CNRI-Python", "ISC", "MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib"),
    "Apache-2.0 WITH LLVM-exception",
}
"""Licences of Python packages of which somebody has read that they let us do what we do."""


@pytest.fixture
def licences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    script = load_script("licences")
    page = tmp_path / "dependencies.md"
    page.write_bytes((ROOT / "docs" / "dependencies.md").read_bytes())
    monkeypatch.setattr(script, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["licences.py", "--check"])
    return script


def test_the_page_is_what_the_locks_and_the_installed_packages_say(licences: ModuleType) -> None:
    licences.main()


def test_a_page_of_another_version_is_out_of_date(licences: ModuleType) -> None:
    text = licences.PAGE.read_text("utf-8")
    licences.PAGE.write_text(re.sub(r"\| pygls \| \S+", "| pygls | 0.1", text), "utf-8")
    with pytest.raises(SystemExit, match="make licences"):
        licences.main()


def test_a_dependency_without_a_reason_is_named(
    licences: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(licences.REASONS, "pathspec")
    with pytest.raises(SystemExit, match="why there is pathspec"):
        licences.main()


def test_a_reason_without_a_dependency_is_named(
    licences: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(licences.REASONS, "leftpad", "pads")
    with pytest.raises(SystemExit, match="leftpad"):
        licences.main()


def test_every_licence_of_a_locked_package_has_been_looked_at(licences: ModuleType) -> None:
    unknown = {
        f"{name}: {part}"
        for name in licences.locked("runtime", "torch", "dev")
        for part in re.split(r" AND | OR ", licences.licence_of(name))
        if part not in LOOKED_AT
    }
    assert unknown == set()
