"""What commands that change a document answer, and how they change it."""

from __future__ import annotations

import msgspec
from lsprotocol import types

from dg_lsp.documents import Document
from dg_lsp.positions import Position
from dg_lsp.session import Session


class Result(msgspec.Struct, frozen=True):
    """Whether the document was changed, and one sentence when it was not."""

    applied: bool
    reason: str = ""
    steps: int = 0
    forwards: int = 0
    ms: dict[str, float] = {}


def refused(reason: str) -> object:
    """The answer of a command that did not get as far as the engine."""
    return msgspec.to_builtins(Result(applied=False, reason=reason))


async def replace(
    session: Session, document: Document, start: Position, end: Position, text: str, label: str
) -> str:
    """Replace a range in the version that `document` is; why not, empty when it was done.

    The check is ours as well as the editor's, for not every editor takes versioned edits.
    """
    newest = session.documents.get(document.uri)
    if newest is None or newest.version != document.version:
        return "The document changed meanwhile, so nothing was applied; ask again."
    if not session.editor.applies_edits:
        return "This editor takes no edits from the server (workspace/applyEdit)."
    edit = types.TextEdit(
        range=types.Range(
            start=types.Position(line=start.line, character=start.character),
            end=types.Position(line=end.line, character=end.character),
        ),
        new_text=text,
    )
    return await session.editor.apply(label, document.uri, document.version, edit)
