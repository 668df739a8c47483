"""Drawing a canvas step by step: holes by entropy, pins dimmed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from dg_lsp.cli.show import CONTEXT_LINES, harmless, surroundings

if TYPE_CHECKING:
    from dg_lsp.completion import Draft

HOLD_SECONDS = 0.15
"""Each draft stands at least this long: a small model takes a step faster than eyes can follow."""
SURE = (64, 224, 128)
UNSURE = (112, 72, 88)
UNSURE_NATS = 4.0
"""Entropy at which the shade is darkest: about 55 equally likely tokens."""


def shade(entropy: float) -> str:
    """A colour between unsure and sure for an entropy in nats."""
    doubt = min(max(entropy, 0.0) / UNSURE_NATS, 1.0)
    red, green, blue = (
        round(sure + (unsure - sure) * doubt) for sure, unsure in zip(SURE, UNSURE, strict=True)
    )
    return f"#{red:02x}{green:02x}{blue:02x}"


def draw(draft: Draft, before: str) -> Text:
    """One draft behind the lines before the cursor.

    Holes are shaded by entropy, seeds are underlined as well, pins are dim; of the
    pins behind the last hole only the first lines are shown.
    """
    text = Text(before)
    last = max((i for i, piece in enumerate(draft.pieces) if piece.kind != "pin"), default=-1)
    tail = harmless("".join(piece.text for piece in draft.pieces[last + 1 :]))
    for piece in draft.pieces[: last + 1]:
        shown = harmless(piece.text)
        if piece.kind == "pin":
            text.append(shown, style="dim")
        else:
            line = "underline " if piece.kind == "seed" else ""
            text.append(shown, style=f"{line}{shade(piece.entropy)}")
    # A long pinned tail would push the hole off the screen.
    text.append("\n".join(tail.split("\n")[: CONTEXT_LINES + 1]), style="dim")
    return text


def heading(draft: Draft) -> Text:
    """What stands above a draft."""
    doubts = [piece.entropy for piece in draft.pieces if piece.kind != "pin"]
    mean = sum(doubts) / len(doubts) if doubts else 0.0
    return Text(f"step {draft.step}   mean entropy {mean:.2f} nats", style="bold")


@contextlib.asynccontextmanager
async def watching(
    console: Console, source_text: str, offset: int, *, hold: float = HOLD_SECONDS
) -> AsyncGenerator[Callable[[Draft], None]]:
    """Give a callback that draws drafts; leaving waits until the last one was seen.

    In a terminal each draft takes the place of the one before; elsewhere they follow each other.
    """
    before = surroundings(source_text, offset).before
    drafts: asyncio.Queue[Draft | None] = asyncio.Queue()

    async def play(show: Callable[[Group], None]) -> None:
        while (draft := await drafts.get()) is not None:
            show(Group(heading(draft), draw(draft, before), Text("")))
            if console.is_terminal:
                await asyncio.sleep(hold)

    with contextlib.ExitStack() as stack:
        show: Callable[[Group], None] = console.print
        if console.is_terminal:
            live = stack.enter_context(Live(console=console, auto_refresh=False))
            show = functools.partial(live.update, refresh=True)
        player = asyncio.create_task(play(show))
        try:
            yield drafts.put_nowait
            drafts.put_nowait(None)
            await player
        finally:
            player.cancel()
