"""The settings that count for a command: the user's file, and the workspace's where it is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dg_lsp.configuration import Settings


def settings_in(folder: Path) -> Settings:
    """The settings as they are for a workspace folder."""
    from dg_lsp.configuration import Settings

    settings = Settings()
    settings.set_folders([folder.as_uri()])
    return settings
