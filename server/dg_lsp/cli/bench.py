"""`dg-lsp bench replay`, `quality`, `humaneval` and `next-edit`: measure the server and a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dg_lsp.cli.bench_next_edit import next_edit
from dg_lsp.cli.errors import EXIT_CODES_HELP, CliError, ExitCode, reported
from dg_lsp.cli.options import AsJson, Model, Threads

if TYPE_CHECKING:
    from dg_lsp.bench.drive import Judged, Plan

app = typer.Typer(
    help="Measure: recorded typing against the server, held-out holes against a model.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXIT_CODES_HELP,
)

app.command("next-edit", epilog=EXIT_CODES_HELP)(next_edit)

_TOLD_EVERY = 25

Processes = Annotated[
    int, typer.Option(min=1, help="Engines side by side; times no longer compare then.")
]
Methods = Annotated[
    str | None, typer.Option(help="Names separated by ';', or 'all'; else the server's own way.")
]
Twin = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="A causal checkpoint to compare with (method 'twin')."),
]
Cache = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keep outcomes here, so that a broken run goes on."),
]


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
    kinds: Annotated[
        str | None,
        typer.Option(help="Kinds of the checkout's own holes, separated by ','; or 'all'."),
    ] = None,
    as_json: AsJson = False,
    model: Model = None,
    twin: Twin = None,
    threads: Threads = None,
    processes: Processes = 1,
    methods: Methods = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first holes of each kind.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Noise seed; else the model's own.")] = None,
    cache: Cache = None,
) -> None:
    """Fill held-out holes by each method and count how many are as they were."""
    with reported():
        from dg_lsp.bench.drive import Plan
        from dg_lsp.bench.holes import FILES, holes_of, read_holes

        wanted = _kinds(kinds, FILES, ["line", "rest"])
        folder, other, names = _asked(model, twin, methods)
        try:
            cases = read_holes(holes, limit) if holes else holes_of(wanted, limit)
        except (OSError, ValueError) as error:
            raise CliError(f"{_plain(error)} Name a file of holes by --holes.") from None
        if holes and kinds:
            cases = [hole for hole in cases if hole.kind in wanted]
        plan = Plan(folder, cases, names, other, threads, processes, seed, cache)
        note = f"{len(cases)} holes of {holes.name if holes else 'bench/quality'}"
        _measure(plan, "quality", f"{note}{_first(limit)}.", as_json)


@app.command(epilog=EXIT_CODES_HELP)
def humaneval(
    data: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Has HumanEval-SingleLineInfilling.jsonl.gz, …")
    ],
    kinds: Annotated[
        str | None, typer.Option(help="single, multi, span, separated by ','; else all three.")
    ] = None,
    as_json: AsJson = False,
    model: Model = None,
    twin: Twin = None,
    threads: Threads = None,
    processes: Processes = 1,
    methods: Methods = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="So many tasks of each kind, drawn by --seed.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which tasks --limit draws.")] = 0,
    cache: Cache = None,
) -> None:
    """Fill the holes of HumanEval-Infilling and run the programs' tests, each in a sandbox."""
    with reported():
        from dg_lsp.bench.drive import Plan
        from dg_lsp.bench.humaneval import FILES, Judge, read_tasks
        from dg_lsp.bench.sandbox import SandboxError

        wanted = _kinds(kinds, FILES, list(FILES))
        folder, other, names = _asked(model, twin, methods)
        try:
            tasks = read_tasks(data, wanted, limit, seed)
        except (OSError, ValueError) as error:
            raise CliError(f"{_plain(error)} Name the folder of the data by --data.") from None
        try:
            judge = Judge(tasks)
        except SandboxError as error:
            raise CliError(str(error)) from None
        holes = [task.hole for task in tasks]
        plan = Plan(folder, holes, names, other, threads, processes, None, cache)
        drawn = f", {limit} of each kind drawn with seed {seed}" if limit else ""
        note = f"{len(holes)} tasks of HumanEval-Infilling{drawn}; {judge.sandbox}."
        _measure(plan, "humaneval", note, as_json, judge)


def _plain(error: OSError | ValueError) -> str:
    """What is wrong with a file, without the system's number for it."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be read ({error.strerror})."
    return str(error)


def _kinds(text: str | None, known: Mapping[str, object], otherwise: list[str]) -> list[str]:
    """Kinds out of a list separated by ','; raises CliError."""
    if text is None:
        return otherwise
    wanted = list(known) if text == "all" else [kind.strip() for kind in text.split(",")]
    for kind in wanted:
        if kind not in known:
            raise CliError(f"No kind of hole is called {kind!r}; choose from: {', '.join(known)}.")
    return wanted


def _asked(
    model: str | None, twin: Path | None, methods: str | None
) -> tuple[Path, Path | None, list[str]]:
    """The folders and methods of a run; raises CliError."""
    from dg_lsp.bench.methods import known_methods
    from dg_lsp.cli.session import usable_model

    try:
        names = known_methods(methods or "default", twin=twin is not None)
    except ValueError as error:
        raise CliError(str(error)) from None
    folder = usable_model(model, here=True)
    other = usable_model(f"{twin.absolute()}", here=True) if twin else None
    return folder, other, names


def _first(limit: int | None) -> str:
    return f", the first {limit} of each kind" if limit else ""


def _measure(plan: Plan, bench: str, note: str, as_json: bool, judge: Judged | None = None) -> None:
    """Run a plan and print its figures; raises CliError."""
    from dg_engine.engine import EngineError

    from dg_lsp.bench.drive import drive
    from dg_lsp.bench.quality import digest_of_plan, summary
    from dg_lsp.bench.tables import markdown

    def told(number: int) -> None:
        if number % _TOLD_EVERY == 0:
            typer.echo(f"{number} of {len(plan.holes)}", err=True)

    try:
        results = asyncio.run(drive(plan, judge, told))
    except EngineError as error:
        raise CliError(str(error), ExitCode.ENGINE_FAILED) from None
    except (OSError, ValueError) as error:
        raise CliError(str(error)) from None
    digest = digest_of_plan(plan, results, bench=bench, note=note)
    typer.echo(json.dumps(summary(digest, results)) if as_json else markdown(digest))


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
