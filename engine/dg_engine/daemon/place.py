"""Where the daemon is: a folder that only the user can enter, with a socket, a lock and a log.

On Windows the folder has the log alone, and a pipe stands in for the rest.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

from dg_engine.engine import EngineError

_MOST_PATH_BYTES = 100
"""Paths of sockets end at 104 bytes on macOS and 108 on Linux."""


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


def runtime_place() -> Place:
    """The place of this user's daemon; its folder is made where it is missing.

    Raises EngineError when the folder cannot be made or is not the user's alone.
    """
    if sys.platform == "win32":
        from dg_engine.daemon.windows import pipe_place

        return pipe_place()
    folder = _folder(os.getuid())
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise EngineError(f"The folder {folder} cannot be made ({error.strerror}).") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise EngineError(f"{folder} is not a folder of yours; remove it.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise EngineError(f"Others may enter {folder}; run: chmod 700 {folder}")
    return Place(folder)


def _folder(user: int) -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        folder = Path(runtime, "dg-lsp")
        if len(bytes(Place(folder).socket)) <= _MOST_PATH_BYTES:
            return folder
    return Path(tempfile.gettempdir(), f"dg-lsp-{user}")
