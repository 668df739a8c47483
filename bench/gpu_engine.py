"""The GPU engine on a GPU, in one run: `python bench/gpu_engine.py [--stages ...]`.

    answers-bf16, answers-float32   dg-tiny beside the CPU's answers (bench/gpu/reference.json)
    ours      the 26B-A4B configuration in FP8 with random weights: start, speed, cancel, cache
    upstream  the same blocks by vLLM without the plugin

Each stage is a process of its own, so that nothing of one is left for the next. Nothing needs to
be installed beside vLLM: the packages of this checkout and the plugin's entry point are put on the
path. Prints lines for a table; `--out` writes them too. `--rehearse` tries the script on a CPU:
`ours` and `upstream` then run dg-tiny with short prompts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGES = ("answers-bf16", "answers-float32", "ours", "upstream")
WORK = Path(os.environ.get("DG_GPU_WORK", "/tmp/dg-gpu-engine"))
MARK = "| "
"""In front of a stage's own lines; vLLM prints others."""


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


def run(stage: str, options: list[str]) -> list[str]:
    """A stage's lines, shown as they come; one that fails says so and the others go on."""
    environment = os.environ | {"PYTHONPATH": path_with_plugin()}
    if stage == "upstream":
        environment["VLLM_PLUGINS"] = ""
    command = [sys.executable, "-m", "bench.gpu.stage", stage, "--work", str(WORK), *options]
    begun = time.perf_counter()
    lines = [stage]
    print(stage, flush=True)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if line.startswith(MARK):
                lines.append(line.removeprefix(MARK).rstrip())
                print(lines[-1], flush=True)
    lines.append(f"  {time.perf_counter() - begun:.0f} s, exit code {process.returncode}")
    print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--backend", help="vLLM's attention backend, its own choice if left out")
    parser.add_argument("--layers", type=int, default=30, help="of the 26B configuration")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    further = ["--layers", str(options.layers)]
    further += ["--backend", options.backend] if options.backend else []
    further += ["--rehearse"] if options.rehearse else []
    lines = [line for stage in options.stages for line in run(stage, further)]
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
