"""The house itself: who may import whom, what the tree may not hold, and what must be there."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAX_LINES = 500
SOURCE = {".py", ".sh", ".ts", ".lua", ".toml", ".mk"}


def load_script(name: str) -> ModuleType:
    """A module of scripts/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


violations: Callable[[Path], list[str]] = load_script("check_imports").violations


def tree_files() -> list[Path]:
    """Files of the tree that Git would keep; all of them where there is no Git."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return [path for name in ran.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    skipped = {".venv", ".git", "__pycache__", "node_modules", ".hypothesis", ".pytest_cache"}
    found: list[Path] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skipped]
        found += [Path(folder, name) for name in names]
    return found


def plant(root: Path, **modules: str) -> Path:
    """A house of the three packages with some modules in it, named package__module."""
    folders = {"dg_lsp": "server", "dg_engine": "engine", "dg_kernels": "kernels"}
    for package, folder in folders.items():
        (root / folder / package).mkdir(parents=True)
        (root / folder / package / "__init__.py").write_text("")
    for name, text in modules.items():
        package, module = name.split("__")
        (root / folders[package] / package / f"{module}.py").write_text(text)
    return root


def test_the_import_rule_holds_here() -> None:
    assert violations(ROOT) == []


VIOLATIONS = {
    "kernels import the engine": ({"dg_kernels__a": "import dg_engine"}, "dg_kernels.a"),
    "kernels import numpy": ({"dg_kernels__a": "from numpy import array"}, "dg_kernels.a"),
    "engine imports the server": (
        {"dg_engine__a": "from dg_lsp import lines", "dg_lsp__lines": ""},
        "dg_engine.a imports dg_lsp",
    ),
    "server imports torch": ({"dg_lsp__a": "import torch.nn"}, "dg_lsp.a imports torch"),
    "server imports torch late": (
        {"dg_lsp__a": "def f():\n    from torch import nn\n"},
        "a.py:2: dg_lsp.a imports torch",
    ),
    "server imports torch by name": (
        {"dg_lsp__a": "import importlib\nimportlib.import_module('torch')\n"},
        "dg_lsp.a imports torch",
    ),
    "server imports kernels": ({"dg_lsp__a": "import dg_kernels"}, "dg_lsp.a imports dg_kernels"),
    "server reaches torch": (
        {
            "dg_lsp__a": "from dg_engine import sampler",
            "dg_engine__sampler": "from . import deep",
            "dg_engine__deep": "import torch",
        },
        "torch is reached by dg_engine.deep <- dg_engine.sampler <- dg_lsp.a",
    ),
    "a round of imports, one of them late": (
        {
            "dg_engine__a": "from dg_engine import b",
            "dg_engine__b": "def f():\n    from dg_engine.a import name\n",
        },
        "imports never lead back",
    ),
    "light engine module imports torch": (
        {"dg_engine__client": "import torch"},
        "torch is reached by dg_engine.client",
    ),
}


@pytest.mark.parametrize("case", VIOLATIONS)
def test_a_planted_violation_is_found(case: str, tmp_path: Path) -> None:
    modules, words = VIOLATIONS[case]
    found = violations(plant(tmp_path, **modules))
    assert any(words in sentence for sentence in found), found


ALLOWED = {
    "down the house": {"dg_lsp__a": "from dg_engine import job", "dg_engine__job": ""},
    "engine on torch and kernels": {"dg_engine__model": "import torch, dg_kernels"},
    "kernels on triton": {"dg_kernels__a": "import math\nimport torch\nimport triton\n"},
    "types only": {
        "dg_engine__job": (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n"
        ),
        "dg_lsp__a": "import dg_engine.job",
    },
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_the_house_allows_is_no_violation(case: str, tmp_path: Path) -> None:
    assert violations(plant(tmp_path, **ALLOWED[case])) == []


def test_starting_the_server_module_leaves_torch_out() -> None:
    code = (
        "import sys, dg_lsp.server\n"
        "print(*sorted({'torch', 'transformers', 'dg_kernels', 'triton'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == ""


@pytest.mark.parametrize("module", ["client", "engine", "job", "models", "tokenizer", "wire"])
def test_the_light_modules_of_the_engine_leave_torch_out(module: str) -> None:
    code = f"import sys, dg_engine.{module}\nprint('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "False"), ran.stderr


# Put together here, so that this file does not hold what it looks for.
HOSTS = [
    "".join(parts)
    for parts in (
        ("pypi", ".org"),
        ("python", "hosted.org"),
        ("download.py", "torch.org"),
        ("registry.npm", "js.org"),
        ("registry.yarn", "pkg.com"),
        ("conda.ana", "conda.org"),
        ("crates", ".io"),
        ("proxy.go", "lang.org"),
        ("open-", "vsx.org"),
    )
]


def test_no_file_names_a_package_registry() -> None:
    pattern = re.compile("|".join(map(re.escape, HOSTS)).encode(), re.IGNORECASE)
    named = [
        str(path.relative_to(ROOT))
        for path in tree_files()
        if path.suffix != ".safetensors" and pattern.search(path.read_bytes())
    ]
    assert named == []


def test_no_source_file_is_too_long() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in tree_files()
        if path.suffix in SOURCE and (count := len(path.read_bytes().splitlines())) > MAX_LINES
    }
    assert long == {}


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize("script", [".ci/run", "scripts/venv.sh", "scripts/demo.sh"])
def test_scripts_run_as_they_are_and_stop_at_errors(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    assert "set -euo pipefail" in (ROOT / script).read_text()


@pytest.mark.parametrize("lock", ["runtime", "dev", "torch"])
def test_every_locked_version_is_exact_and_hashed(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    requirements = [line for line in lines if not line.startswith(" ")]
    assert requirements
    for requirement in requirements:
        assert re.fullmatch(r"[a-z0-9.-]+==\S+ \\", requirement)
    assert sum("--hash=sha256:" in line for line in lines) >= len(requirements)


def test_the_locks_agree() -> None:
    def versions(lock: str) -> set[str]:
        text = (ROOT / "requirements" / f"{lock}.txt").read_text()
        return set(re.findall(r"^[a-z0-9.-]+==\S+", text, re.MULTILINE))

    assert versions("runtime") <= versions("dev")


def test_keys_of_vllms_configuration_are_spelled_in_one_place_and_told() -> None:
    from dg_engine.vllm_plugin import options

    told = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    keys = {value for name, value in vars(options).items() if name.isupper()}
    assert len(keys) == 4
    for key in keys:
        assert f"`{key}`" in told or f'"{key}"' in told
    sources = [path for path in (ROOT / "engine").rglob("*.py") if path.name != "options.py"]
    spelled = [path for path in sources if any(key in path.read_text("utf-8") for key in keys)]
    assert spelled == []
