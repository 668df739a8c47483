"""How a command ends: an exit code, and for anything but success one sentence on stderr."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Generator

import typer


class ExitCode(enum.IntEnum):
    """What scripts may rely on."""

    DONE = 0
    NOTHING = 1
    """The model had nothing to suggest."""
    BAD_INPUT = 2
    """A file, a position, an option or a model folder that cannot be used."""
    ENGINE_FAILED = 3
    """The engine did not start, or it ended while it worked."""
    INTERRUPTED = 130
    """Ctrl-C."""


EXIT_CODES_HELP = (
    "Exit codes: 0 done; 1 nothing to suggest; 2 bad input (file, position, option, model); "
    "3 the engine failed; 130 interrupted."
)


class CliError(Exception):
    """Ends the command; its message is one sentence that says what to do."""

    def __init__(self, sentence: str, code: ExitCode = ExitCode.BAD_INPUT) -> None:
        super().__init__(sentence)
        self.code = code


@contextlib.contextmanager
def reported() -> Generator[None]:
    """Turn a CliError into its sentence and exit code, and Ctrl-C into 130: no tracebacks."""
    try:
        yield
    except CliError as error:
        typer.echo(f"dg-lsp: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(error.code) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
