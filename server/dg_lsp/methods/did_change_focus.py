"""dg/didChangeFocus: the user looks at the editor's window, or at something else."""

from __future__ import annotations

import msgspec

from dg_lsp.session import Session

NAME = "dg/didChangeFocus"


class Params(msgspec.Struct, frozen=True):
    """What clients send."""

    focused: bool | None
    """None where the editor does not know any more."""


def handle(session: Session, params: Params) -> None:
    """Where windows share an engine, the one that is looked at goes first."""
    session.engine.set_focus(params.focused)
