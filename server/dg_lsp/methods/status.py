"""dg/status: how things stand, and why the last request was answered with nothing."""

from __future__ import annotations

import msgspec

from dg_lsp.editor import REPORT_METHOD
from dg_lsp.session import Session

NAME = REPORT_METHOD


class Params(msgspec.Struct, frozen=True):
    """None."""


async def handle(session: Session, params: Params) -> object:
    """Report; from now on the editor is told of every change as well."""
    session.status.reports = True
    return msgspec.to_builtins(session.status.report)
