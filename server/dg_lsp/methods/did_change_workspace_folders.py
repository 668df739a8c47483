"""workspace/didChangeWorkspaceFolders: privacy rules and settings follow the folders."""

from __future__ import annotations

import msgspec

from dg_lsp.session import Session
from dg_lsp.uris import normalised


class Folder(msgspec.Struct, frozen=True):
    """WorkspaceFolder, as far as we need it."""

    uri: str


class Event(msgspec.Struct, frozen=True):
    """WorkspaceFoldersChangeEvent."""

    added: list[Folder] = []
    removed: list[Folder] = []


class Params(msgspec.Struct, frozen=True):
    """DidChangeWorkspaceFoldersParams."""

    event: Event


async def handle(session: Session, params: Params) -> None:
    """Put in force what holds in the folders that are left and those that came."""
    gone = {normalised(folder.uri) for folder in (*params.event.removed, *params.event.added)}
    left = [root for root in session.editor.roots if normalised(root) not in gone]
    await session.set_roots([*left, *(folder.uri for folder in params.event.added)])
