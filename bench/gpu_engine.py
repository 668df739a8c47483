"""The GPU engine on a GPU, in one run: `python bench/gpu_engine.py [--stages ...]`.

    answers-bf16, answers-float32   dg-tiny beside the CPU's answers (bench/gpu/reference.json)
    ours      the 26B-A4B configuration in FP8 with random weights: start, speed, cancel, cache
    upstream  the same blocks by vLLM without the plugin
    nvfp4     dg-tiny in NVFP4 beside the CPU's answers with the same numbers
    parity-RULE, parity-RULE-bf16   frames of random checkpoints beside the CPU's, by a mask rule

Each stage is a process of its own, so that nothing of one is left for the next, and one that fails
says so while the others go on. Nothing needs to be installed beside vLLM: the packages of this
checkout and the plugin's entry point are put on the path. Lines for a table are printed as they
come; `--out` holds them too from the first one on. What vLLM says lies in the work folder.
`--rehearse` tries the script on vLLM for the CPU: `ours` and `upstream` then run a small model.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.gpu.cpu import SETTINGS  # noqa: E402 - a script finds its packages first
from bench.gpu.report import FAILED, MARK  # noqa: E402

Tell = Callable[[str], None]
MEASURED = ("answers-bf16", "answers-float32", "ours", "upstream")
PARITY = ("parity-anchored", "parity-symmetric", "parity-anchored-bf16", "parity-symmetric-bf16")
STAGES = (*MEASURED, *PARITY, "nvfp4")
WORK = Path(os.environ.get("DG_GPU_WORK", "/tmp/dg-gpu-engine"))
LAST_LINES = 12
"""Of vLLM's own, shown when a stage ends without a word."""


def path_with_plugin() -> str:
    """PYTHONPATH that holds this checkout and an entry point for vLLM to find."""
    info = WORK / "plugin" / "dg_lsp_plugin-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dg-lsp-plugin\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[vllm.general_plugins]\ndg = dg_engine.vllm_plugin.register:register\n"
    )
    folders = [ROOT, *(ROOT / name for name in ("server", "engine", "kernels")), info.parent]
    return os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])


def run(stage: str, name: str, options: list[str], limit_s: float, tell: Tell) -> None:
    """Tell a stage's lines as they come, and how it ended."""
    environment = os.environ | {"PYTHONPATH": path_with_plugin()}
    if stage == "upstream":
        environment["VLLM_PLUGINS"] = ""
    if "--rehearse" in options:
        environment |= SETTINGS
    begun, log = time.perf_counter(), WORK / f"{name}.log"
    tell(name)
    with subprocess.Popen(
        [sys.executable, "-m", "bench.gpu.stage", stage, "--work", str(WORK), *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        explained = relay(process.stdout or (), log, tell)
        code = process.wait()
        timer.cancel()
    if code and not explained:
        late = time.perf_counter() - begun >= limit_s
        tell(
            f"  stopped at its limit of {limit_s:g} s" if late else "  it broke off; its log ends:"
        )
        for line in log.read_text(encoding="utf-8").splitlines()[-LAST_LINES:]:
            tell(f"    {line[:160]}")
    tell(f"  {time.perf_counter() - begun:.0f} s, exit code {code}; all it said: {log}")


def relay(said: Iterable[str], log: Path, tell: Tell) -> bool:
    """Write everything to the log and tell a stage's own lines; whether one said what failed."""
    explained = False
    with log.open("w", encoding="utf-8") as everything:
        for line in said:
            everything.write(line)
            everything.flush()
            if line.startswith(MARK):
                tell(line.removeprefix(MARK).rstrip())
                explained |= FAILED in line
    return explained


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(MEASURED))
    parser.add_argument("--backend", help="vLLM's attention backend, its own choice if left out")
    parser.add_argument("--arguments", help="of vLLM's AsyncEngineArgs besides, as JSON")
    parser.add_argument("--top-k", type=int, help="of ours: see VllmOptions.conditioning_top_k")
    parser.add_argument("--fp8-head", action="store_true", help="of ours: see VllmOptions")
    parser.add_argument("--plain-layers", action="store_true", help="of ours: as upstream has them")
    parser.add_argument("--scale", help="changes of bench.gpu.speed.Scale, as JSON")
    parser.add_argument("--parity", type=Path, help="see bench/gpu/parity.py")
    parser.add_argument("--nvfp4", type=Path, help="see bench/gpu/nvfp4.py")
    parser.add_argument("--brief", action="store_true", help="of upstream: longest prompt alone")
    parser.add_argument("--name", help="of the stage in its log and profile")
    parser.add_argument("--layers", type=int, default=30, help="of the 26B configuration")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--limit", type=float, default=1200, help="seconds of each stage")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    further = ["--layers", str(options.layers)]
    for name in ("backend", "arguments", "top_k", "name", "parity", "nvfp4", "scale"):
        value = getattr(options, name)
        further += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    further += ["--rehearse"] if options.rehearse else []
    further += ["--fp8-head"] if options.fp8_head else []
    further += ["--plain-layers"] if options.plain_layers else []
    further += ["--brief"] if options.brief else []
    if options.out is not None:
        options.out.write_text("")

    def tell(line: str) -> None:
        print(line, flush=True)
        if options.out is not None:
            with options.out.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    for stage in options.stages:
        run(stage, options.name or stage, further, options.limit, tell)


if __name__ == "__main__":
    main()
