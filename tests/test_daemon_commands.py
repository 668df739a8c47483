"""`dg-lsp serve` and `dg-lsp status` against a real daemon."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys

import psutil
import pytest
from dg_engine.daemon.link import ask
from dg_engine.daemon.messages import DaemonStatus, EngineReport, WindowStatus
from dg_lsp.cli.status import exposition, shown
from rich.console import Console

from tests.daemon_world import World, until, world

__all__ = ["world"]


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command's end."""
    command = [sys.executable, "-m", "dg_lsp.cli.main", *arguments]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )


@pytest.mark.asyncio
async def test_without_a_daemon_both_say_so(world: World) -> None:
    for arguments in (("status",), ("status", "--json"), ("serve", "--stop")):
        done = await asyncio.to_thread(ran, *arguments)
        assert done.returncode == 1
        assert done.stderr.startswith("dg-lsp: No shared engine serves")
        assert done.stdout == ""


@pytest.mark.asyncio
async def test_the_state_is_shown_in_three_forms(world: World) -> None:
    window = await world.window("Neovim 0.12")
    await world.works(window)
    text, as_json, metrics = await asyncio.gather(
        *(asyncio.to_thread(ran, "status", *more) for more in ((), ("--json",), ("--metrics",)))
    )
    assert [done.returncode for done in (text, as_json, metrics)] == [0, 0, 0]
    row = next(line for line in text.stdout.splitlines() if "Neovim 0.12" in line)
    assert re.search(rf"Neovim 0.12\W+{os.getpid()}\W+0\W+0\W+1\W+\d+\W+\d+\W+50%", row)
    (engine,) = json.loads(as_json.stdout)["engines"]
    assert engine["state"] == "ready"
    assert engine["windows"][0]["done"] == 1
    model = f'model="{world.folder / "scripted"}",window="Neovim 0.12",process="{os.getpid()}"'
    assert f"dg_lsp_window_jobs_done_total{{{model}}} 1\n" in metrics.stdout


@pytest.mark.asyncio
async def test_the_doctor_tells_of_it(world: World) -> None:
    before = await asyncio.to_thread(ran, "doctor", "--no-engine")
    assert "no engine is shared yet" in before.stdout
    await world.window()
    after = await asyncio.to_thread(ran, "doctor", "--no-engine")
    assert f"process {await world.pid()} serves 1 windows" in after.stdout


@pytest.mark.asyncio
async def test_stop_ends_it_and_a_window_that_needs_one_starts_another(world: World) -> None:
    window = await world.window()
    before = await world.pid()
    done = await asyncio.to_thread(ran, "serve", "--stop")
    assert (done.returncode, done.stderr) == (0, "")
    await until(lambda: not psutil.pid_exists(before))
    await world.works(window)
    assert await world.pid() != before


@pytest.mark.asyncio
async def test_serve_serves_until_it_is_interrupted_and_refuses_to_serve_twice(
    world: World,
) -> None:
    command = [sys.executable, "-m", "dg_lsp.cli.main", "serve", "--exit-after", "30"]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        status = None
        while status is None:
            status = await ask(world.place)
            await asyncio.sleep(0.05)
        assert status.pid == process.pid
        second = await asyncio.to_thread(ran, "serve")
        assert second.returncode == 2
        assert "serves already" in second.stderr
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 10) == 0
        assert not world.place.socket.exists()
    finally:
        if process.returncode is None:
            process.kill()


def test_metrics_are_in_the_format_that_prometheus_reads() -> None:
    window = WindowStatus('a "quoted" \\ name\n', 7, 1, 2, 3, 0.5, 10.0, 20.0, 0.25)
    engine = EngineReport("/m", "ready", "", 9, None, [window])
    text = exposition(DaemonStatus("1", 8, 1.5, 1_000, [engine]))
    sample = re.compile(r'dg_lsp_\w+(\{(\w+="(\\.|[^"\\\n])*",?)*\})? \d+(\.\d+)?')
    typed: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            typed.add(line.split()[2])
            assert line.split()[3] in ("gauge", "counter")
        elif not line.startswith("# HELP"):
            assert sample.fullmatch(line), line
            assert line.split("{")[0].split(" ")[0] in typed
    assert 'window="a \\"quoted\\" \\\\ name\\n"' in text
    assert 'dg_lsp_resident_bytes{process="engine"' not in text  # what is not known is not told


def test_times_of_a_window_whose_jobs_were_all_cancelled_are_not_told_as_zero() -> None:
    window = WindowStatus("Neovim", 7, 0, 1, 12, 0.4, 0.0, 0.0, 0.0)
    engine = EngineReport("m", "ready", "", 9, None, [window])
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(shown(DaemonStatus("1", 8, 1.5, 1_000, [engine])))
    assert re.search(r"Neovim\W+7\W+0\W+1\W+12\W+–\W+–\W+0%", capture.get())
