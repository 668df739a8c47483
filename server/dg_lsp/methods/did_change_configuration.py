"""workspace/didChangeConfiguration: new settings, pushed or to be asked for."""

from __future__ import annotations

from typing import Any

import msgspec

from dg_lsp.configuration import SECTION, ours_in
from dg_lsp.editor import EditorError
from dg_lsp.session import Session


class Params(msgspec.Struct, frozen=True):
    """DidChangeConfigurationParams."""

    settings: Any = None


async def handle(session: Session, params: Params) -> None:
    """Put the settings in force; what is wrong with them is shown."""
    given = ours_in(params.settings)
    if given is None and session.editor.gives_configuration:
        try:
            given = await session.editor.configuration(SECTION)
        except EditorError:
            return
    if given is None:
        return  # the settings of others changed
    await session.set_client_settings(given)
