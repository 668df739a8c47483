"""`dg-lsp status`: the engine that all windows share, and what they want of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from dg_lsp.cli.errors import CliError, ExitCode, reported
from dg_lsp.cli.options import AsJson
from dg_lsp.cli.serve import place_of_daemon

if TYPE_CHECKING:
    from dg_engine.daemon.messages import DaemonStatus, EngineReport, WindowStatus
    from rich.console import RenderableType

_MIB = 1 << 20
_REFRESH_SECONDS = 0.5
_FOCUS = {True: "yes", False: "no", None: "–"}
"""The last is a window that never said."""


def status(
    as_json: AsJson = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print Prometheus text exposition format.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it live, until Ctrl-C.")] = False,
) -> None:
    """Show the shared engine: models, memory, windows, their jobs, times and cached tokens."""
    with reported():
        if as_json + metrics + watch > 1:
            raise CliError("--json, --metrics and --watch exclude each other; choose one.")
        if watch:
            _watch()
            return
        found = asked()
        if found is None:
            raise CliError("No shared engine serves; a window starts it.", ExitCode.NOTHING)
        if as_json:
            typer.echo(json.dumps(msgspec.to_builtins(found), ensure_ascii=False))
        elif metrics:
            typer.echo(exposition(found), nl=False)
        else:
            from rich.console import Console

            Console().print(shown(found))


def asked() -> DaemonStatus | None:
    """What the daemon says of itself; None where none serves, CliError where it cannot be asked."""
    from dg_engine.daemon.link import ask
    from dg_engine.engine import EngineError

    try:
        return asyncio.run(ask(place_of_daemon()))
    except EngineError as error:
        raise CliError(str(error), ExitCode.ENGINE_FAILED) from None


def _watch() -> None:
    from rich.live import Live

    with Live(screen=True, auto_refresh=False) as live:
        while True:
            found = asked()
            live.update("No shared engine serves." if found is None else shown(found), refresh=True)
            time.sleep(_REFRESH_SECONDS)


def shown(found: DaemonStatus) -> RenderableType:
    """The daemon's state as a table for people."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    memory = _mib(found.memory_bytes)
    head = f"dg-lsp {found.version}, process {found.pid}, {_span(found.uptime_s)}, {memory}"
    parts: list[RenderableType] = [Text(head)]
    for engine in found.engines:
        text = f"{engine.model}: {engine.state}, {_mib(engine.memory_bytes)}"
        parts.append(Text(f"\n{text}"))
        if engine.state in ("restarting", "failed"):
            parts.append(Text(engine.message))
        table = Table(
            *("window", "process", "focus", "waiting", "running", "done"),
            *("p50 ms", "p90 ms", "cached"),
        )
        for window in engine.windows:
            table.add_row(*_cells(window))
        parts.append(table)
    return Group(*parts)


def _cells(window: WindowStatus) -> list[str]:
    return [
        *(window.name or "?", str(window.pid), _FOCUS[window.focused]),
        *(str(window.waiting), str(window.running), str(window.done)),
        *(_ms(window.p50_ms), _ms(window.p90_ms), f"{window.cached:.0%}"),
    ]


def _ms(found: float) -> str:
    """Zero is what there is before a first job ran to its end."""
    return f"{found:.0f}" if found else "–"


def _mib(size: int | None) -> str:
    return "no memory" if size is None else f"{size / _MIB:.0f} MiB"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"up {hours}:{minutes:02}:{rest:02}"


_GAUGES: tuple[tuple[str, str, Callable[[WindowStatus], float | None]], ...] = (
    ("window_jobs_waiting", "Jobs that wait.", lambda w: w.waiting),
    ("window_jobs_running", "Jobs that run.", lambda w: w.running),
    ("window_jobs_done_total", "Jobs that ended.", lambda w: w.done),
    ("window_engine_seconds_total", "Seconds of the engine.", lambda w: w.seconds),
    ("window_job_p50_milliseconds", "From arrival to end, median.", lambda w: w.p50_ms),
    ("window_job_p90_milliseconds", "From arrival to end, 90 %.", lambda w: w.p90_ms),
    ("window_cached_ratio", "Part of prompts' tokens that were cached.", lambda w: w.cached),
    ("window_focused", "1 where the user looks at it, 0 where not.", lambda w: _number(w.focused)),
)


def _number(known: bool | None) -> int | None:
    return None if known is None else int(known)


def exposition(found: DaemonStatus) -> str:
    """The daemon's state in Prometheus' text exposition format 0.0.4."""
    lines = [*_metric("uptime_seconds", "Since the start.", [("", found.uptime_s)])]
    memory: list[tuple[str, float | None]] = [('process="daemon"', found.memory_bytes)]
    memory += [
        (f'process="engine",model={_quoted(e.model)}', e.memory_bytes) for e in found.engines
    ]
    lines += _metric("resident_bytes", "Memory of the processes.", memory)
    states = [(f"model={_quoted(e.model)},state={_quoted(e.state)}", 1) for e in found.engines]
    lines += _metric("engine_state", "The state that holds is 1.", states)
    for name, text, value in _GAUGES:
        rows = [(_labels(e, w), value(w)) for e in found.engines for w in e.windows]
        lines += _metric(name, text, rows)
    return "\n".join(lines) + "\n"


def _metric(name: str, text: str, rows: Sequence[tuple[str, float | None]]) -> list[str]:
    kind = "counter" if name.endswith("_total") else "gauge"
    known = [(labels, value) for labels, value in rows if value is not None]
    return [
        f"# HELP dg_lsp_{name} {text}",
        f"# TYPE dg_lsp_{name} {kind}",
        *(f"dg_lsp_{name}{{{labels}}} {value}".replace("{}", "") for labels, value in known),
    ]


def _labels(engine: EngineReport, window: WindowStatus) -> str:
    named = f"model={_quoted(engine.model)},window={_quoted(window.name)}"
    return f'{named},process="{window.pid}"'


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
