"""Write docs/demo.svg: the demo's canvas step by step, recorded from a real run of the model."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path

from demo_place import MODULE, demo_text
from dg_lsp.cli import session, show
from dg_lsp.cli.place import Position, offset_of
from dg_lsp.cli.watch import watching
from dg_lsp.completion import Completion, Source, language_of
from rich.console import Console

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"
COLUMNS = 88


async def record(console: Console, text: str, offset: int) -> Completion:
    """Draw every draft below the one before, as --watch does in a pipe, then return the answer."""
    async with (
        session.open_session(session.usable_model(None)) as opened,
        watching(console, text, offset, hold=0.0) as on_draft,
    ):
        source = Source(MODULE, language_of(MODULE), text)
        opened.completer.settings = opened.completer.settings.always_denoised()
        return await opened.completer.complete(source, offset, on_draft=on_draft)


def main() -> None:
    """Run the model once and save what it did."""
    console = Console(
        record=True, file=io.StringIO(), width=COLUMNS, highlight=False, markup=False, emoji=False
    )
    text, line, column = demo_text()
    offset = offset_of(text, Position(Path(MODULE), line, column))
    console.print(f"$ dg-lsp complete {MODULE}:{line}:{column} --watch\n", style="bold")
    completion = asyncio.run(record(console, text, offset))
    console.print(show.filled(text, offset, completion.insert, coloured=True))
    console.print(f"\n{show.figures(completion, completion.ms['total'])}", style="dim")
    PICTURE.parent.mkdir(exist_ok=True)
    # Rich asks for a font on the web; whoever reads a README need not be told on.
    svg = re.sub(r"@font-face\s*{[^}]*}\s*", "", console.export_svg(title="dg-lsp"))
    PICTURE.write_text(svg, encoding="utf-8")
    print(PICTURE)


if __name__ == "__main__":
    main()
