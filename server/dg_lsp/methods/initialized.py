"""initialized: the client is ready for our messages, so loading may begin and be told of."""

from __future__ import annotations

from lsprotocol import types

from dg_lsp.session import Session


async def handle(session: Session, params: types.InitializedParams) -> None:
    """Load the model."""
    session.open()
