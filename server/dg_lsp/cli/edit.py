"""`dg-lsp edit FILE:L1-L2 "instruction"`: change lines as told, shown as a unified diff."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dg_lsp.cli.allowed import read_allowed
from dg_lsp.cli.errors import CliError, ExitCode, reported
from dg_lsp.cli.options import AsJson, Deadline, Model, Threads
from dg_lsp.cli.place import LineRange, check_lines, parse_lines, replace_lines

if TYPE_CHECKING:
    from dg_lsp.completion import Edit, Source


def edit(
    place: Annotated[str, typer.Argument(metavar="FILE:L1-L2", help="Lines, from 1, both kept.")],
    instruction: Annotated[str, typer.Argument(help="What to change, in a sentence.")],
    as_json: AsJson = False,
    model: Model = None,
    threads: Threads = None,
    deadline_ms: Deadline = None,
) -> None:
    """Edit lines by an instruction and print a unified diff; the file stays as it is."""
    with reported():
        _edit(place, instruction, as_json, model, threads, deadline_ms)


def _edit(
    place: str,
    instruction: str,
    as_json: bool,
    model: str | None,
    threads: int | None,
    deadline_ms: int | None,
) -> None:
    lines = parse_lines(place)
    text = read_allowed(lines.path)
    check_lines(text, lines)
    if not instruction.strip():
        raise CliError("The instruction is empty; say what to change.")

    from dg_engine.job import DoneKind

    from dg_lsp.cli import session, show
    from dg_lsp.completion import Source
    from dg_lsp.languages import language_of

    folder = session.usable_model(model)
    source = Source(str(lines.path), language_of(str(lines.path)), text)
    answer, ms = asyncio.run(_ask(folder, source, lines, instruction, threads, deadline_ms))
    if answer.done is DoneKind.ERROR:
        code = ExitCode.BAD_INPUT if answer.bad_input else ExitCode.ENGINE_FAILED
        raise CliError(answer.reason, code)
    changed = replace_lines(text, lines, answer.new_text)
    diff = show.unified_diff(str(lines.path), text, changed)
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "diff": diff,
                    "done": str(answer.done),
                    "steps": answer.steps,
                    "forwards": answer.forwards,
                    "ms": {stage: round(value, 3) for stage, value in ms.items()},
                },
                ensure_ascii=False,
            )
        )
    elif diff:
        console = show.console()
        if show.can_colour(console):
            show.put(console, show.coloured_diff(diff))
        else:
            typer.echo(diff, nl=False)
    if not diff:
        raise CliError(answer.reason, ExitCode.NOTHING)


async def _ask(
    folder: Path,
    source: Source,
    lines: LineRange,
    instruction: str,
    threads: int | None,
    deadline_ms: int | None,
) -> tuple[Edit, dict[str, float]]:
    """Start the engine, edit once, close; milliseconds by stage, the start's among them."""
    from dg_lsp.cli import session

    async with session.open_session(folder, threads=threads) as opened:
        answer = await opened.completer.edit(
            source, lines.first, lines.last, instruction, deadline_ms=deadline_ms
        )
    return answer, {"start": opened.start_ms, **answer.ms}
