"""Where the daemon is: a folder that only the user can enter, with a socket, a lock and a log.

On Windows the folder has the log alone, and a pipe stands in for the rest.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

WINDOWS_VARIABLE = "DG_LSP_SHARE_ENGINE_ON_WINDOWS"


class Place:
    """The files of one daemon."""

    def __init__(self, folder: Path, address: str = "") -> None:
        """`address` is where windows reach the daemon: the socket where it is left out."""
        self.folder = folder
        self.socket = folder / "engine.sock"
        self.lock = folder / "engine.lock"
        self.log = folder / "engine.log"
        self.address = address or str(self.socket)


def is_offered() -> bool:
    """Whether windows share an engine here: on Windows, where it was never run, on request."""
    return sys.platform != "win32" or os.environ.get(WINDOWS_VARIABLE, "").strip() == "1"
