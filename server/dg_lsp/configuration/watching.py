"""Watching settings files, those that do not exist yet included."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

logger = logging.getLogger(__name__)

LATEST_SECONDS = 5
"""How long a change may go unnoticed."""


async def watch(
    files: Callable[[], Iterable[Path]], on_change: Callable[[], Awaitable[object]]
) -> None:
    """Call `on_change` when any of the files may have changed, come or gone; until cancelled.

    That is at once, or after LATEST_SECONDS where the system told nothing: a folder may have been
    made and filled before it was watched. What `files` returns may change with `on_change`.
    Folders are watched, never what is below them: a file is often saved by putting another in its
    place.
    """
    # Off the event loop, which answers the editor meanwhile.
    watchfiles = await asyncio.to_thread(importlib.import_module, "watchfiles")
    while True:
        folders, names = places_of(files())

        def matters(change: object, path: str, names: set[str] = names) -> bool:
            return path in names

        try:
            async for _ in watchfiles.awatch(
                *folders,
                watch_filter=matters,
                recursive=False,
                rust_timeout=LATEST_SECONDS * 1000,
                yield_on_timeout=True,
            ):
                await on_change()
                if places_of(files()) != (folders, names):
                    break
        except (OSError, RuntimeError) as error:
            logger.warning("Settings files are not watched any more (%s).", type(error).__name__)
            return


def places_of(files: Iterable[Path]) -> tuple[set[Path], set[str]]:
    """Folders to be watched for these files, and the paths in them that matter.

    Where a file's folder does not exist, the nearest one above is watched for it. A link is
    watched where it stands and where it leads.
    """
    folders: set[Path] = set()
    names: set[str] = set()
    for file in files:
        for path in {file, Path(os.path.realpath(file))}:
            below, folder = path, path.parent
            names.add(str(path))
            while not folder.is_dir() and folder != folder.parent:
                names.add(str(folder))
                below, folder = folder, folder.parent
            names |= {str(folder), os.path.realpath(folder) + os.sep + below.name}
            folders.add(folder)
    return folders, names
