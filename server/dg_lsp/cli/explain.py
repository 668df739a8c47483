"""`dg-lsp explain FILE:LINE:COL`: what the model would be shown, without running it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from dg_lsp.cli.allowed import read_allowed
from dg_lsp.cli.context import with_context
from dg_lsp.cli.errors import reported
from dg_lsp.cli.options import Model, MultiLine
from dg_lsp.cli.place import offset_of, parse_position

if TYPE_CHECKING:
    from dg_engine.job import CanvasJob
    from dg_engine.tokenizer import Tokenizer
    from rich.text import Text

    from dg_lsp.completion import Explanation
    from dg_lsp.prompts.base import Section

_STYLES = {
    "mark": "",
    "instruction": "magenta",
    "prefix": "cyan",
    "suffix": "blue",
    "context": "yellow",
}
"""By `Origin`."""
_HOLE = "░"
_HOLE_STYLE, _SEED_STYLE, _PIN_STYLE = "green", "underline green", "dim"


def explain(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE:COL", help="Cursor, from 1:1.")],
    model: Model = None,
    multi_line: MultiLine = None,
) -> None:
    """Show the prompt and the canvas as the model sees them, coloured by source.

    Each part of the prompt stands under its name and where it comes from, what is of other files
    under their paths; in the canvas ░ is an open position and what is pinned is dim. The engine is
    not started.
    """
    with reported():
        position = parse_position(place)
        text = read_allowed(position.path)
        offset = offset_of(text, position)

        from dg_lsp.cli import session, show
        from dg_lsp.completion import Source
        from dg_lsp.languages import language_of

        folder = session.usable_model(model)
        completer = session.idle_completer(folder)
        source = Source(str(position.path), language_of(str(position.path)), text)
        source = with_context(position.path, source, offset)
        explanation = completer.explain(source, offset, multi_line=multi_line)
        show.put(show.console(), picture(explanation, completer.tokenizer))


def picture(explanation: Explanation, tokenizer: Tokenizer) -> Text:
    """Prompt, canvas and rules of a job as text."""
    from rich.text import Text

    from dg_lsp.cli.show import harmless

    job = explanation.job
    text = Text()
    text.append(f"Prompt, {len(job.prompt)} tokens: ", style="bold")
    text.append_text(_legend(explanation))
    for section in explanation.sections:
        style = _STYLES[section.origin]
        text.append(f"── {harmless(_title(section))}\n", style=f"dim {style}".strip())
        if section.text:
            text.append(f"{harmless(section.text)}\n", style=style)
    text.append(f"\nCanvas, {len(job.canvas)} positions: ", style="bold")
    text.append_text(_canvas_legend(job))
    text.append_text(canvas_text(job, tokenizer))
    text.append(f"\n\n{rules(explanation)}", style="dim")
    return text


def _title(section: Section) -> str:
    """What a section is called: context by its file."""
    return f"{section.origin}: {section.name}" if section.text else section.name


def _legend(explanation: Explanation) -> Text:
    """The origins that a prompt has, each in its colour."""
    from rich.text import Text

    origins = dict.fromkeys(section.origin for section in explanation.sections if section.text)
    shown = [Text(str(origin), style=_STYLES[origin]) for origin in origins]
    return Text(", ").join(shown).append("\n")


def _canvas_legend(job: CanvasJob) -> Text:
    """What the canvas holds, each in its style."""
    from dg_engine.job import Role
    from rich.text import Text

    shown = [
        Text(f"{job.roles.count(role)} {name}", style=style)
        for role, (name, style) in {
            Role.HOLE: ("open", _HOLE_STYLE),
            Role.SEED: ("seeds", _SEED_STYLE),
            Role.PIN: ("pins", _PIN_STYLE),
        }.items()
        if role in job.roles
    ]
    return Text(", ").join(shown).append("\n")


def canvas_text(job: CanvasJob, tokenizer: Tokenizer) -> Text:
    """The canvas before the first step: ░ for each open position, seeds underlined, pins dim."""
    from dg_engine.job import Role
    from rich.text import Text

    from dg_lsp.cli.show import harmless

    text = Text()
    for role, run in groupby(zip(job.canvas, job.roles, strict=True), key=lambda pair: pair[1]):
        ids = [token for token, _ in run]
        if role == Role.HOLE:
            text.append(_HOLE * len(ids), style=_HOLE_STYLE)
        else:
            style = _PIN_STYLE if role == Role.PIN else _SEED_STYLE
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
