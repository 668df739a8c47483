"""What a command shows a model of other files: as the server does, in a bounded time."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from dg_lsp.cli.allowed import gate_in, root_of

if TYPE_CHECKING:
    from dg_lsp.completion import Source

LOOK_SECONDS = 2.0
"""How long to look for files; in a larger workspace what was found by then counts."""


def with_context(path: Path, source: Source, offset: int) -> Source:
    """`source`, the text of the file at `path`, with the context of an offset in it."""
    root = root_of(path)
    return asyncio.run(_found(path.absolute().as_uri(), root, source, offset))


async def _found(uri: str, root: Path, source: Source, offset: int) -> Source:
    import msgspec

    from dg_lsp.context.keeper import Keeper
    from dg_lsp.documents import Document, DocumentStore
    from dg_lsp.prompts.view import place_of

    documents = DocumentStore()
    document = Document.of(uri, 0, source.language, source.text)
    documents.put(document)
    keeper = Keeper(documents)
    keeper.configure([root.as_uri()], gate_in(root))
    keeper.start(watching=False)
    line, _ = place_of(source.text, offset)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            await keeper.settled()
            keeper.at(document, line)  # now what it needs is being read
            await keeper.settled()
    found = msgspec.structs.replace(source, context=keeper.at(document, line))
    keeper.close()
    return found
