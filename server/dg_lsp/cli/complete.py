"""`dg-lsp complete FILE:LINE:COL`: fill the hole at a cursor."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dg_lsp.cli.allowed import read_allowed
from dg_lsp.cli.context import with_context
from dg_lsp.cli.errors import CliError, ExitCode, reported
from dg_lsp.cli.options import AsJson, Deadline, Model, MultiLine, Threads
from dg_lsp.cli.place import offset_of, parse_position

if TYPE_CHECKING:
    from dg_lsp.completion import Completion, Source


class Ask(NamedTuple):
    """What one run of the command asks of the completer."""

    watch: bool
    multi_line: bool | None
    threads: int | None
    deadline_ms: int | None


def complete(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE:COL", help="Cursor, from 1:1.")],
    watch: Annotated[bool, typer.Option("--watch", help="Draw the canvas step by step.")] = False,
    as_json: AsJson = False,
    model: Model = None,
    multi_line: MultiLine = None,
    threads: Threads = None,
    deadline_ms: Deadline = None,
) -> None:
    """Fill the hole at a cursor and print the lines around it.

    LINE and COL count from 1, as editors print them; the column behind the last character of a
    line is its end. The inserted part is green in a terminal and stands in «…» elsewhere.
    """
    with reported():
        _complete(place, as_json, model, Ask(watch, multi_line, threads, deadline_ms))


def _complete(place: str, as_json: bool, model: str | None, ask: Ask) -> None:
    position = parse_position(place)
    text = read_allowed(position.path)
    offset = offset_of(text, position)
    if ask.watch and as_json:
        raise CliError("--watch and --json exclude each other; choose one.")

    from dg_engine.job import DoneKind

    from dg_lsp.cli import session, show
    from dg_lsp.completion import Source
    from dg_lsp.languages import language_of

    folder = session.usable_model(model)
    source = Source(str(position.path), language_of(str(position.path)), text)
    source = with_context(position.path, source, offset)
    completion, ms = asyncio.run(_ask(folder, source, offset, ask))
    if completion.done is DoneKind.ERROR:
        raise CliError(completion.reason, ExitCode.ENGINE_FAILED)
    if as_json:
        answer = show.completion_object(completion, position.line, position.column, ms)
        typer.echo(json.dumps(answer, ensure_ascii=False))
    elif completion.insert:
        console = show.console()
        coloured = show.can_colour(console)
        show.put(console, show.filled(text, offset, completion.insert, coloured=coloured))
        show.put(console, show.dimmed(f"\n{show.figures(completion, ms['total'])}"))
    if not completion.insert:
        raise CliError(completion.reason, ExitCode.NOTHING)


async def _ask(
    folder: Path, source: Source, offset: int, ask: Ask
) -> tuple[Completion, dict[str, float]]:
    """Start the engine, complete once, close; milliseconds by stage, the start's among them."""
    from dg_lsp.cli import session, show

    async with contextlib.AsyncExitStack() as stack:
        opened = await stack.enter_async_context(session.open_session(folder, threads=ask.threads))
        on_draft = None
        if ask.watch:
            from dg_lsp.cli.watch import watching

            opened.completer.settings = opened.completer.settings.always_denoised()
            on_draft = await stack.enter_async_context(
                watching(show.console(), source.text, offset)
            )
        completion = await opened.completer.complete(
            source,
            offset,
            multi_line=ask.multi_line,
            deadline_ms=ask.deadline_ms,
            on_draft=on_draft,
        )
    return completion, {"start": opened.start_ms, **completion.ms}
