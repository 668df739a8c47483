"""`dg-lsp model list` and `dg-lsp model verify`: which checkpoints are here, and are they whole."""

from __future__ import annotations

from typing import Annotated

import typer

from dg_lsp.cli.errors import EXIT_CODES_HELP, CliError, ExitCode, reported

_MIB = 1 << 20

app = typer.Typer(
    help="Checkpoints on this machine: list and verify them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXIT_CODES_HELP,
)


@app.command("list", epilog=EXIT_CODES_HELP)
def list_() -> None:
    """List the models that can be named, with size and folder."""
    from dg_engine.models import list_models, model_folders

    with reported():
        entries = list_models()
        if not entries:
            places = " or ".join(str(folder) for folder in model_folders())
            raise CliError(f"No models found; put a checkpoint folder into {places}.")
        width = max(len(entry.name) for entry in entries)
        for entry in entries:
            size = f"{entry.size_bytes / _MIB:.1f} MiB"
            typer.echo(f"{entry.name:<{width}}  {size:>12}  {entry.path}")


@app.command(epilog=EXIT_CODES_HELP)
def verify(
    name: Annotated[
        str | None, typer.Argument(help="Name or folder; else $DG_LSP_MODEL, dg-tiny.")
    ] = None,
) -> None:
    """Check a model's files: all there, whole, and equal to their recorded sha256."""
    from dg_engine.engine import EngineError
    from dg_engine.models import find_model, verify_model

    with reported():
        try:
            folder = find_model(name)
        except EngineError as error:
            raise CliError(str(error)) from None
        problems = verify_model(folder)
        for problem in problems:
            typer.echo(f"dg-lsp: {problem}", err=True)
        if problems:
            raise typer.Exit(ExitCode.BAD_INPUT)
        typer.echo(f"{folder} is whole.")
