"""`dg-lsp serve`: hold one engine for all windows of this user, in the foreground."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from dg_lsp.cli.errors import CliError, ExitCode, reported

if TYPE_CHECKING:
    from dg_engine.daemon.place import Place

STOP_SECONDS = 5.0
_POLL_SECONDS = 0.05


def serve(
    unload_after: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Let go of a model that nobody used so long."),
    ] = None,
    exit_after: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="End so long after the last window."),
    ] = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="End the one that serves; windows start another.")
    ] = False,
) -> None:
    """Hold one engine for all windows, in the foreground; windows start it by themselves else."""
    with reported():
        place = place_of_daemon()
        if stop:
            if not asyncio.run(_stopped(place)):
                raise CliError("No shared engine serves.", ExitCode.NOTHING)
            return
        from dg_engine.daemon.__main__ import serve as serve_windows
        from dg_engine.daemon.daemon import Limits
        from dg_engine.engine import EngineError

        defaults = Limits()
        limits = Limits(
            defaults.unload_after_s if unload_after is None else unload_after,
            defaults.exit_after_s if exit_after is None else exit_after,
        )
        try:
            served = serve_windows(limits)
        except EngineError as error:
            raise CliError(str(error), ExitCode.ENGINE_FAILED) from None
        if not served:
            raise CliError("A shared engine serves already; `dg-lsp status` shows it.")


def place_of_daemon() -> Place:
    """Where the daemon's files are; raises CliError where there can be none."""
    from dg_engine.daemon.place import WINDOWS_VARIABLE, is_offered
    from dg_engine.daemon.system import runtime_place
    from dg_engine.engine import EngineError

    if not is_offered():
        raise CliError(f"Sharing was never run on Windows; {WINDOWS_VARIABLE}=1 tries it.")
    try:
        return runtime_place()
    except EngineError as error:
        raise CliError(str(error)) from None


async def _stopped(place: Place) -> bool:
    """End the daemon and wait until it is gone; False when none serves."""
    from dg_engine.daemon.link import ask, quit_daemon

    if not await quit_daemon(place):
        return False
    for _ in range(int(STOP_SECONDS / _POLL_SECONDS)):
        if await ask(place) is None:
            return True
        await asyncio.sleep(_POLL_SECONDS)
    raise CliError("The shared engine does not end; see its log.", ExitCode.ENGINE_FAILED)
