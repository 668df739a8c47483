"""initialize: agree on the position encoding and read the settings."""

from __future__ import annotations

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder

from dg_lsp.positions import Encoding
from dg_lsp.session import Session


async def handle(session: Session, params: types.InitializeParams) -> None:
    """Remember what the client can do; pygls answers with our capabilities."""
    session.editor.capabilities = params.capabilities
    session.editor.name = params.client_info.name if params.client_info else ""
    session.encoding = Encoding(
        ServerCapabilitiesBuilder.choose_position_encoding(params.capabilities)
    )
    folders = [folder.uri for folder in params.workspace_folders or []]
    session.watch_parent(params.process_id)
    session.settings.set_client(params.initialization_options)
    await session.set_roots(folders or ([params.root_uri] if params.root_uri else []))
