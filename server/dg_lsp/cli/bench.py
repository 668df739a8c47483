"""`dg-lsp bench replay` and `dg-lsp bench quality`: measure the server and a model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dg_lsp.cli.errors import EXIT_CODES_HELP, CliError, ExitCode, reported

app = typer.Typer(
    help="Measure: recorded typing against the server, held-out holes against a model.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXIT_CODES_HELP,
)

_TOLD_EVERY = 25

Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="Name or folder of a model; else $DG_LSP_MODEL, dg-tiny."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads for the engine.")]


@app.command(epilog=EXIT_CODES_HELP)
def replay(
    sessions: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of recordings; else the checkout's own."),
    ] = None,
    as_json: AsJson = False,
    model: Model = None,
    threads: Threads = None,
    speed: Annotated[
        float, typer.Option(min=0.1, max=1000, help="2 types twice as fast as recorded.")
    ] = 1.0,
    patient: Annotated[
        bool, typer.Option("--patient", help="Await each answer before the next key.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Play this session; repeatable.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=JSON", help="A setting of the server; repeatable."),
    ] = None,
) -> None:
    """Type recorded sessions into the real server and count what it shows.

    Ends with 1 when an answer was stale or a request was not answered exactly once.
    """
    with reported():
        from dg_lsp.bench.player import Pace
        from dg_lsp.bench.replay import SESSIONS, ReplayError
        from dg_lsp.bench.replay import replay as play
        from dg_lsp.bench.sessions import read_sessions
        from dg_lsp.cli.session import usable_model

        settings = _settings(change or [])
        folder = usable_model(model)
        settings["model"] = str(folder)
        if threads is not None:
            settings["threads"] = threads
        try:
            found = read_sessions(sessions or SESSIONS)
        except ValueError as error:
            raise CliError(f"{error} Name a folder by --sessions.") from None
        chosen = [session for session in found if not only or session.name in only]
        if not chosen:
            raise CliError(f"No session is called {' or '.join(only or [])}.")
        try:
            result = asyncio.run(
                play(
                    chosen,
                    model=folder.name,
                    settings=settings,
                    pace=Pace(speed, patient),
                    after_each=lambda name: typer.echo(name, err=True),
                )
            )
        except ReplayError as error:
            raise CliError(str(error), ExitCode.ENGINE_FAILED) from None
        typer.echo(json.dumps(result.as_object()) if as_json else result.as_markdown())
        whole = result.whole
        if whole.stale or whole.unanswered:
            raise CliError(
                f"{whole.stale} answers were stale and {whole.unanswered} requests were not "
                "answered exactly once.",
                ExitCode.NOTHING,
            )


@app.command(epilog=EXIT_CODES_HELP)
def quality(
    holes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="One hole a line: id, prefix, middle, suffix, path; else the checkout's own.",
        ),
    ] = None,
    as_json: AsJson = False,
    model: Model = None,
    threads: Threads = None,
    methods: Annotated[
        str | None, typer.Option(help="Names separated by ';'; else the server's own way.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first holes.")] = None,
) -> None:
    """Fill held-out holes by each method and count how many are as they were."""
    with reported():
        from dg_engine.engine import EngineError

        from dg_lsp.bench.machine import machine
        from dg_lsp.bench.methods import METHODS
        from dg_lsp.bench.quality import HOLES, evaluate, markdown, read_holes, summary
        from dg_lsp.cli.session import usable_model

        names = methods.split(";") if methods else ["default"]
        for name in names:
            if name not in METHODS:
                known = "; ".join(METHODS)
                raise CliError(f"No method is called {name!r}; choose from: {known}.")
        folder = usable_model(model)
        try:
            cases = read_holes(holes or HOLES, limit)
        except (OSError, ValueError) as error:
            raise CliError(f"{error} Name a file of holes by --holes.") from None

        def told(number: int) -> None:
            if number % _TOLD_EVERY == 0:
                typer.echo(f"{number} of {len(cases)}", err=True)

        try:
            results = asyncio.run(evaluate(folder, cases, names, threads, told))
        except EngineError as error:
            raise CliError(str(error), ExitCode.ENGINE_FAILED) from None
        if as_json:
            typer.echo(json.dumps({"model": folder.name, "methods": summary(results)}))
        else:
            where = f"engine on {threads or 'its own choice of'} threads; {machine()}"
            typer.echo(f"{len(cases)} holes, model {folder.name}, {where}.\n\n{markdown(results)}")


def _settings(changes: list[str]) -> dict[str, Any]:
    """`KEY=JSON` pairs as an object; raises CliError."""
    found: dict[str, Any] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        try:
            found[key] = json.loads(value)
        except ValueError:
            equals = ""
        if not key or not equals:
            raise CliError(f"--set takes KEY=JSON, not {change!r}.")
    return found
