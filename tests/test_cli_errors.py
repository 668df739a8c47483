"""What goes wrong on the command line: one sentence, the right exit code, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODEL = str(Path(__file__).parents[1] / "models" / "dg-tiny")
GOOD = "def add(a, b):\n    return a + b\n"


def dg_lsp(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The real program in a process of its own, with a data folder that has no models."""
    environment = {**os.environ, "XDG_DATA_HOME": str(cwd / "data"), **variables}
    environment.pop("DG_LSP_MODEL", None) if "DG_LSP_MODEL" not in variables else None
    command = [sys.executable, "-c", "from dg_lsp.cli.main import main; main()", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with files good and bad, and one truncated model."""
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "binary.bin").write_bytes(b"\x7fELF\0\0\1")
    (tmp_path / "latin.py").write_bytes("name = 'é'\n".encode("latin-1"))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    model = tmp_path / "cut"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "diffusion_gemma"}')
    (model / "tokenizer.json").write_text("{}")
    header = b'{"w": {"dtype": "U8", "shape": [9], "data_offsets": [0, 9]}}'
    (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"1234")
    return tmp_path


BAD_INPUT = {
    "no position": (["complete", "good.py"], "FILE:LINE:COL"),
    "missing file": (["complete", "gone.py:1:1"], "gone.py does not exist"),
    "no data of HumanEval": (
        ["bench", "humaneval", "--data", "gone", "--model", MODEL],
        "gz cannot be read (No such file or directory). Name the folder of the data by --data.",
    ),
    "no file of holes": (
        ["bench", "quality", "--holes", "gone.jsonl", "--model", MODEL],
        "gone.jsonl cannot be read (No such file or directory). Name a file of holes by --holes.",
    ),
    "directory": (["complete", "folder:1:1"], "is a directory"),
    "pipe": (["complete", "pipe:1:1"], "not a regular file"),
    "binary": (["complete", "binary.bin:1:1"], "binary file"),
    "not utf-8": (["complete", "latin.py:1:1"], "latin.py is not UTF-8 (byte 9)"),
    "line zero": (["complete", "good.py:0:1"], "good.py has 3 lines"),
    "line behind the end": (["complete", "good.py:4:1"], "good.py has 3 lines"),
    "column zero": (["complete", "good.py:1:0"], "columns 1 to 15"),
    "column behind the end": (["complete", "good.py:1:16"], "columns 1 to 15"),
    "empty file": (["complete", "empty.py:1:2"], "columns 1 to 1"),
    "explain too": (["explain", "good.py:9:1"], "good.py has 3 lines"),
    "edit without lines": (["edit", "good.py", "x"], "FILE:L1-L2"),
    "edit backwards": (["edit", "good.py:2-1", "x"], "lines 1 to 2"),
    "edit behind the end": (["edit", "good.py:1-3", "x"], "lines 1 to 2"),
    "edit without words": (["edit", "good.py:1-1", " "], "instruction is empty"),
    "watch and json": (["complete", "good.py:1:1", "--watch", "--json"], "--watch and --json"),
    "stdio and socket": (["--stdio", "--socket", "9"], "--stdio and --socket"),
    "server with a command": (["--stdio", "doctor"], "leave the command out"),
    "unknown model": (["complete", "good.py:1:1", "--model", "nope"], "No model named 'nope'"),
    "model path": (["complete", "good.py:1:1", "-m", "./nope"], "nope does not exist"),
    "truncated model": (["complete", "good.py:1:1", "-m", "./cut"], "model.safetensors is trunc"),
    "edit, truncated": (["edit", "good.py:1-1", "x", "-m", "./cut"], "model.safetensors is trunc"),
    "explain, truncated": (["explain", "good.py:1:1", "-m", "./cut"], "is truncated"),
    "verify, truncated": (["model", "verify", "./cut"], "model.safetensors is truncated"),
    "verify, unknown": (["model", "verify", "nope"], "No model named 'nope'"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_sentence_and_exit_code_2(case: str, files: Path) -> None:
    arguments, words = BAD_INPUT[case]
    ran = dg_lsp(*arguments, cwd=files)
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    assert ran.stderr.startswith("dg-lsp: ")
    assert ran.stderr.endswith(".\n")
    assert ran.stderr.count("\n") == 1
    assert words in ran.stderr


def test_the_variable_names_a_bad_model(files: Path) -> None:
    ran = dg_lsp("complete", "good.py:1:1", cwd=files, DG_LSP_MODEL="./cut")
    assert ran.returncode == 2
    assert "truncated" in ran.stderr


def test_an_unknown_option_is_bad_input(files: Path) -> None:
    ran = dg_lsp("complete", "good.py:1:1", "--colour", cwd=files)
    assert ran.returncode == 2
    assert "--colour" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_doctor_reports_a_bad_model_in_its_table(files: Path) -> None:
    ran = dg_lsp("doctor", "--model", "./cut", cwd=files)
    assert ran.returncode == 2
    assert "✗ model" in ran.stdout
    assert "truncated" in ran.stdout
    assert "✓ torch" in ran.stdout


def test_doctor_tells_what_is_wrong_with_the_settings(files: Path) -> None:
    (files / ".dg-lsp.toml").write_text('prefetch = true\nmodel = "./cut"\n')
    home = files / "home"
    (home / "dg-lsp").mkdir(parents=True)
    (home / "dg-lsp" / "config.toml").write_text('model = "./cut"\nthreads = 0\n')
    ran = dg_lsp("doctor", cwd=files, XDG_CONFIG_HOME=str(home))
    file = home / "dg-lsp" / "config.toml"
    assert f"✓ settings  {file}, {files / '.dg-lsp.toml'}" in ran.stdout
    assert f'{file}:2: The setting "threads" takes a whole number from 1 to 1024' in ran.stdout
    assert f'{files / ".dg-lsp.toml"}:2: The setting "model" counts only in folders' in ran.stdout
    assert "truncated" in ran.stdout  # the model is the one that the user's file names


def test_help_names_every_exit_code_and_comes_at_once(files: Path) -> None:
    dg_lsp("--help", cwd=files)  # the first start may have to write bytecode
    start = time.perf_counter()
    ran = dg_lsp("--help", cwd=files)
    seconds = time.perf_counter() - start
    assert ran.returncode == 0
    assert all(f" {code} " in ran.stdout for code in (0, 1, 2, 3, 130))
    # The bar is 0.5 s on an idle machine; tests share theirs.
    assert seconds < 2.0


@pytest.mark.parametrize("module", ["cli.main", "cli.complete", "cli.watch", "completion"])
def test_the_command_line_never_imports_torch(module: str, tmp_path: Path) -> None:
    code = (
        f"import dg_lsp.{module}, sys; "
        "print(sorted({'torch', 'transformers', 'dg_kernels'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert ran.stdout.strip() == "[]"
