"""shutdown: end our own work first, for what comes after the response is not read."""

from __future__ import annotations

from dg_lsp.session import Session


async def handle(session: Session, params: object) -> None:
    """Answer every request, close the engine; pygls then answers this one."""
    await session.close()
