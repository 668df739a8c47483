"""`dg-lsp doctor`: what was found on this machine, and what to do about the rest."""

from __future__ import annotations

import asyncio
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from dg_lsp.cli.errors import CliError, ExitCode, reported
from dg_lsp.cli.options import AsJson, Model
from dg_lsp.cli.settings import settings_in

PROBE_SECONDS = 5.0
"""How long a program may take to say its version."""
OLDEST_PYTHON = (3, 11)
EDITORS = {"code": "VS Code", "nvim": "Neovim", "hx": "Helix", "emacs": "Emacs"}


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked for."""

    what: str
    found: str
    """What is there, in words; empty when nothing is."""
    advice: str = ""
    """What to do, one sentence; empty when there is nothing to do."""
    code: int = ExitCode.DONE
    """What a command would end with for this reason."""


def doctor(
    as_json: AsJson = False,
    model: Model = None,
    engine: Annotated[
        bool, typer.Option("--engine/--no-engine", help="Start the engine once, to see it run.")
    ] = True,
) -> None:
    """Say what was found (Python, torch, GPU, settings, model, engine, editors) and what to do."""
    with reported():
        findings = [
            *(_python(), _torch(), _gpu(), _settings()),
            *_model(model, try_engine=engine),
            _shared(),
            *_editors(),
        ]
        code = max((finding.code for finding in findings), default=ExitCode.DONE)
        if as_json:
            answer = {"ok": code == 0, "findings": [msgspec.to_builtins(f) for f in findings]}
            typer.echo(json.dumps(answer, ensure_ascii=False))
        else:
            _print(findings)
        if code:
            raise typer.Exit(code)


def _print(findings: Sequence[Finding]) -> None:
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        mark = "✗" if finding.code else ("✓" if finding.found else "·")
        typer.echo(f"{mark} {finding.what:<{width}}  {finding.found or 'not found'}")
    advice = [finding.advice for finding in findings if finding.advice]
    for sentence in advice:
        typer.echo(f"→ {sentence}")
    if not any(finding.code for finding in findings):
        typer.echo("Ready: attach an editor to `dg-lsp --stdio`; the README shows how.")


def _python() -> Finding:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return Finding("Python", found, "Install Python 3.11 or newer.", ExitCode.BAD_INPUT)
    return Finding("Python", found)


def _torch() -> Finding:
    # The version is read from the installed metadata: torch itself stays out of this process.
    try:
        return Finding("torch", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return Finding("torch", "", "Install torch: `make demo` does.", ExitCode.BAD_INPUT)


def _gpu() -> Finding:
    found = _first_line(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"])
    if found:
        return Finding("GPU", found)
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return Finding("GPU", "Apple silicon")
    return Finding("GPU", "none; the processor is used")


def _settings() -> Finding:
    """The settings files that are there, and what is wrong in them."""
    settings = settings_in(Path.cwd())
    found = ", ".join(str(path) for path in settings.files if path.exists())
    return Finding("settings", found or "the defaults", " ".join(settings.problems))


def _model(name: str | None, *, try_engine: bool) -> list[Finding]:
    """The model's files, and the engine on them when they are whole."""
    from dg_lsp.cli import session

    try:
        folder = session.usable_model(name)
    except CliError as error:
        return [Finding("model", "", str(error), error.code)]
    findings = [Finding("model", str(folder))]
    if try_engine:
        try:
            findings.append(Finding("engine", asyncio.run(session.describe_engine(folder))))
        except CliError as error:
            findings.append(Finding("engine", "", str(error), error.code))
    return findings


def _shared() -> Finding:
    """The engine that all windows share, where one serves."""
    from dg_engine.daemon.place import WINDOWS_VARIABLE, is_offered

    from dg_lsp.cli.status import asked

    if not is_offered():
        found = f"off on Windows, where it was never run; {WINDOWS_VARIABLE}=1 tries it"
        return Finding("sharing", found)

    try:
        found = asked()
    except CliError as error:
        return Finding("sharing", "", str(error), error.code)
    if found is None:
        return Finding("sharing", "no engine is shared yet; the first window starts one")
    windows = sum(len(engine.windows) for engine in found.engines)
    return Finding("sharing", f"process {found.pid} serves {windows} windows")


def _editors() -> list[Finding]:
    findings = [
        Finding(name, _first_line([program, "--version"])) for program, name in EDITORS.items()
    ]
    if any(finding.found for finding in findings):
        return [finding for finding in findings if finding.found]
    names = ", ".join(EDITORS)
    return [Finding("editors", "", f"None of {names} is on PATH; any LSP client will do.")]


def _first_line(command: list[str]) -> str:
    """First line that a program prints; empty when it is missing, slow or fails."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        ran = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = ran.stdout.strip().splitlines()
    return lines[0].strip() if ran.returncode == 0 and lines else ""
