"""The command line with the real engine process, on a small random checkpoint."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.checkpoints import write_checkpoint

CODE = "import math\n\n\ndef area(r):\n    return \n\n\nprint(area(2))\n"
COMMAND = [sys.executable, "-c", "from dg_lsp.cli.main import main; main()"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    # Less peaked than others, so that no line of its causal mode is sure enough to end the job.
    write_checkpoint(folder, canvas_length=128, max_position_embeddings=2048, embedding_scale=5.0)
    return folder


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "circle.py").write_text(CODE)
    return f"{tmp_path / 'circle.py'}:5:12"


def test_a_real_answer_is_one_object_with_every_stage(model: Path, place: str) -> None:
    command = [*COMMAND, "complete", place, "--json", "--model", str(model), "--threads", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    answer = json.loads(ran.stdout)
    keys = ["insert", "line", "column", "done", "steps", "forwards", "confidence", "ms"]
    assert list(answer) == keys
    assert bool(answer["insert"]) == (ran.returncode == 0)
    assert answer["steps"] >= 1
    assert answer["forwards"] >= answer["steps"]
    assert {"start", "prompt", "encode", "steps", "total"} <= answer["ms"].keys()


@pytest.mark.parametrize("command", ["complete", "edit"])
def test_jobs_fit_a_model_with_a_small_canvas(tmp_path: Path, place: str, command: str) -> None:
    write_checkpoint(tmp_path / "small", canvas_length=8, max_position_embeddings=2048)
    where = [place] if command == "complete" else [place.removesuffix(":12"), "shorten it"]
    arguments = [command, *where, "--json", "--model", str(tmp_path / "small"), "--threads", "1"]
    ran = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr


def test_watch_draws_the_drafts_of_a_real_run(model: Path, place: str) -> None:
    command = [*COMMAND, "complete", place, "--watch", "--model", str(model)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("step 1   mean entropy"), ran.stderr
    assert "    return " in ran.stdout


def test_explain_needs_no_weights_that_load(model: Path, place: str) -> None:
    command = [*COMMAND, "explain", place, "--model", str(model)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Prompt, ")
    assert "<fim_prefix>\nimport math" in ran.stdout
    assert "░" in ran.stdout


def test_a_model_that_does_not_load_is_exit_code_3(model: Path, place: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("model.safetensors", "tokenizer.json", "generation_config.json"):
        (broken / name).write_bytes((model / name).read_bytes())
    (broken / "config.json").write_text('{"model_type": "diffusion_gemma"}')
    command = [*COMMAND, "complete", place, "--model", str(broken)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stderr


def test_ctrl_c_ends_the_command_and_its_engine(model: Path, place: str) -> None:
    # Whoever runs the tests in the background may have them ignore Ctrl-C, which is inherited.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program_text = heeding + COMMAND[-1]
    command = [*COMMAND[:-1], program_text, "complete", place, "--model", str(model)]
    program = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    engines: list[psutil.Process] = []
    while not engines:
        assert program.poll() is None
        engines = psutil.Process(program.pid).children()
    program.send_signal(signal.SIGINT)  # torch takes longer to load than this takes to arrive
    # The pipes reach their end only when no child holds them any more.
    out, err = program.communicate(timeout=20)
    assert (program.returncode, out, err) == (130, b"", b"")
    assert psutil.wait_procs(engines, timeout=2)[1] == []
