"""`dg-lsp bench next-edit`: what is proposed after an edit, and whether it is right."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dg_lsp.cli.errors import CliError, reported
from dg_lsp.cli.options import AsJson, Model, Threads

_TOLD_EVERY = 10


def next_edit(
    cases: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl", help="Cases of your own; else the checkout's."),
    ] = None,
    as_json: AsJson = False,
    model: Model = None,
    threads: Threads = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first cases of each kind.")
    ] = None,
) -> None:
    """Make the first edit of each case and count the proposals for the rest of its file."""
    with reported():
        from dg_lsp.bench.next_edit_report import markdown
        from dg_lsp.bench.next_edits import CASES, KINDS, read_cases
        from dg_lsp.cli.session import usable_model

        try:
            found = read_cases(cases or CASES)
        except (OSError, ValueError) as error:
            raise CliError(f"{error} Name a file of cases by --cases.") from None
        chosen = [
            case
            for kind in KINDS
            for case in [one for one in found if one.kind == kind][: limit or len(found)]
        ]
        result = asyncio.run(_measured(chosen, usable_model(model), threads))
        typer.echo(json.dumps(result) if as_json else markdown(result))


async def _measured(cases: list[Any], folder: Path, threads: int | None) -> dict[str, Any]:
    from dg_lsp.bench.machine import machine
    from dg_lsp.bench.next_edit import measure
    from dg_lsp.bench.next_edit_report import figures
    from dg_lsp.cli.session import open_session

    played = 0

    def told() -> None:
        nonlocal played
        played += 1
        if played % _TOLD_EVERY == 0:
            typer.echo(f"{played} cases played", err=True)

    async with open_session(folder, threads=threads) as opened:
        outcomes = await measure(cases, opened.completer, told)
    on = threads or "its own choice of"
    return {
        "bench": "next-edit",
        "model": folder.name,
        "machine": machine(),
        "note": (
            f"Model {folder.name}; {len(cases)} cases. The engine on {on} threads; {machine()}."
        ),
        "ways": figures(outcomes),
        "wrong": [
            {"way": way, "case": outcome.name, "origin": str(outcome.shown[-1].origin)}
            for way, played in outcomes.items()
            for outcome in played
            if outcome.shown and not outcome.shown[-1].right
        ],
    }
