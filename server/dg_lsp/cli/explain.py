"""`dg-lsp explain FILE:LINE:COL`: what the model would be shown, without running it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from dg_lsp.cli.allowed import read_allowed
from dg_lsp.cli.complete import Model, MultiLine
from dg_lsp.cli.errors import reported
from dg_lsp.cli.place import offset_of, parse_position

if TYPE_CHECKING:
    from dg_engine.job import CanvasJob
    from dg_engine.tokenizer import Tokenizer
    from rich.text import Text

    from dg_lsp.completion import Explanation

_SECTION_STYLES = ("cyan", "yellow", "magenta", "blue")
_HOLE = "░"


def explain(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE:COL", help="Cursor, from 1:1.")],
    model: Model = None,
    multi_line: MultiLine = None,
) -> None:
    """Show the prompt and the canvas as the model sees them, coloured by source.

    Each part of the prompt stands under its name; in the canvas ░ is an open position and what is
    pinned is dim. The engine is not started.
    """
    with reported():
        position = parse_position(place)
        text = read_allowed(position.path)
        offset = offset_of(text, position)

        from dg_lsp.cli import session, show
        from dg_lsp.completion import Source, language_of

        folder = session.usable_model(model)
        completer = session.idle_completer(folder)
        source = Source(str(position.path), language_of(str(position.path)), text)
        explanation = completer.explain(source, offset, multi_line=multi_line)
        show.put(show.console(), picture(explanation, completer.tokenizer))


def picture(explanation: Explanation, tokenizer: Tokenizer) -> Text:
    """Prompt, canvas and rules of a job as text."""
    from rich.text import Text

    from dg_lsp.cli.show import harmless

    job = explanation.job
    text = Text()
    text.append(f"Prompt, {len(job.prompt)} tokens\n", style="bold")
    for number, section in enumerate(explanation.sections):
        style = _SECTION_STYLES[number % len(_SECTION_STYLES)]
        text.append(f"── {section.name}\n", style=f"dim {style}")
        if section.text:
            text.append(f"{harmless(section.text)}\n", style=style)
    text.append(f"\nCanvas, {len(job.canvas)} positions\n", style="bold")
    text.append(canvas_text(job, tokenizer))
    text.append(f"\n\n{rules(explanation)}", style="dim")
    return text


def canvas_text(job: CanvasJob, tokenizer: Tokenizer) -> Text:
    """The canvas before the first step: ░ for each open position, seeds underlined, pins dim."""
    from dg_engine.job import Role
    from rich.text import Text

    from dg_lsp.cli.show import harmless

    text = Text()
    for role, run in groupby(zip(job.canvas, job.roles, strict=True), key=lambda pair: pair[1]):
        ids = [token for token, _ in run]
        if role == Role.HOLE:
            text.append(_HOLE * len(ids), style="green")
        else:
            style = "dim" if role == Role.PIN else "underline green"
            text.append(harmless(tokenizer.decode(ids)), style=style)
    return text


def rules(explanation: Explanation) -> str:
    """One line: how the canvas would be filled."""
    job = explanation.job
    widths = ", ".join(str(width) for width in job.widths)
    race = f"hole lengths raced: {widths}; " if widths else ""
    length = "several lines" if explanation.multi_line else "one line"
    return (
        f"{length}; {race}rule {job.rule}, at most {job.max_steps} steps; stop at {job.stop.kind}"
    )
