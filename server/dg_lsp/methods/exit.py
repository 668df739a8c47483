"""exit: end the process."""

from __future__ import annotations

from dg_lsp.session import Session


def handle(session: Session, params: object) -> None:
    """Let the main task end; it closes what is still open."""
    session.ended.set()
