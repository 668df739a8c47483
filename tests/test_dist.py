"""What `make dist` puts into the wheel; `make try-dist` installs it."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = [
    ROOT / "server" / "dg_lsp",
    ROOT / "engine" / "dg_engine",
    ROOT / "kernels" / "dg_kernels",
]
MODEL = ROOT / "models" / "dg-tiny"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([ROOT / "scripts" / "wheel.sh", folder], check=True, timeout=100)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_every_module_and_no_other(wheel: Path) -> None:
    sources = {
        str(path.relative_to(package.parent))
        for package in PACKAGES
        for path in package.rglob("*.py")
    }
    with zipfile.ZipFile(wheel) as files:
        assert {name for name in files.namelist() if name.endswith(".py")} == sources


def test_the_wheel_holds_the_model_byte_for_byte(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        folder = f"{'-'.join(wheel.stem.split('-')[:2])}.data/data/share/dg-lsp/models/dg-tiny/"
        held = {
            name.removeprefix(folder): files.read(name)
            for name in files.namelist()
            if name.startswith(folder)
        }
    assert held == {path.name: path.read_bytes() for path in MODEL.iterdir()}


def test_the_wheel_names_the_command_and_the_plugin(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        (entry_points,) = (n for n in files.namelist() if n.endswith("/entry_points.txt"))
        said = files.read(entry_points).decode()
    assert "dg-lsp = dg_lsp.cli.main:main" in said
    assert "dg = dg_engine.vllm_plugin.register:register" in said
