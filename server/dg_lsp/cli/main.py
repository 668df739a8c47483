"""The command line's entry: options that start the server, and the commands."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from dg_lsp.cli import bench, complete, doctor, edit, explain, model, serve, status
from dg_lsp.cli.errors import EXIT_CODES_HELP, CliError, ExitCode, reported

_LAST_PORT = 65535

app = typer.Typer(
    name="dg-lsp",
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    # Plain help starts in a third of the time and reads the same in a pipe.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES_HELP,
)


@app.callback()
def start(
    context: typer.Context,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve one editor over standard input and output.")
    ] = False,
    socket: Annotated[
        int | None,
        typer.Option(
            min=1, max=_LAST_PORT, metavar="PORT", help="Serve on this port of 127.0.0.1 only."
        ),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Fill in and edit code at the cursor with a block-diffusion model, on this machine."""
    with reported():
        if version:
            from importlib.metadata import version as installed

            typer.echo(f"dg-lsp {installed('dg-lsp')}")
        elif context.invoked_subcommand is not None:
            if stdio or socket is not None:
                raise CliError("--stdio and --socket start the server; leave the command out.")
        elif stdio and socket is not None:
            raise CliError("--stdio and --socket exclude each other; choose one.")
        elif stdio:
            from dg_lsp.server import run_stdio

            run_stdio()
        elif socket is not None:
            from dg_lsp.server import run_socket

            try:
                run_socket(socket)
            except OSError as error:
                why = os.strerror(error.errno or 0)  # the exception's own text names the address
                raise CliError(f"Port {socket} cannot be used ({why}).") from None
        else:
            typer.echo(context.get_help())
            raise typer.Exit(ExitCode.BAD_INPUT)


_COMMANDS = (
    *(complete.complete, edit.edit, explain.explain, doctor.doctor),
    *(serve.serve, status.status),
)
for command in _COMMANDS:
    app.command(epilog=EXIT_CODES_HELP)(command)
app.add_typer(bench.app, name="bench")
app.add_typer(model.app, name="model")


def main() -> None:
    """Run the command line; the console script's entry."""
    app()


if __name__ == "__main__":
    main()
