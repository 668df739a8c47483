"""Filling `Files` from the disk in slices, so that the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from dg_lsp.context.files import Files, is_source

MOST_FOLDERS = 20_000
SLICE_SECONDS = 0.002
_BATCH = 32
"""Folders that are listed at once, in a thread: a disk may be slow."""
_NAMES = 512
"""Names that are taken in without a look at the clock."""
SKIPPED = frozenset(
    {
        *(".git", ".hg", ".svn", ".tox", ".venv", "venv", "__pycache__", "node_modules"),
        *(".idea", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"),
        "site-packages",
    }
)
"""Folders of tools, whether a repository ignores them or not."""


class Listed(NamedTuple):
    """What is in one folder: folders, no links among them, and source files."""

    folder: str
    folders: list[str]
    names: list[str]


async def walk(files: Files, roots: Iterable[str], may_enter: Callable[[str], bool]) -> None:
    """Take in the source files below `roots`, nearest to a root first.

    `may_enter` is asked before a folder is looked into. Ends early when `files` is full.
    """
    pause = _Pause()
    queue = deque(roots)
    seen = 0
    while queue and not files.is_full and seen < MOST_FOLDERS:
        batch = [queue.popleft() for _ in range(min(_BATCH, len(queue)))]
        seen += len(batch)
        for listed in await asyncio.to_thread(listed_in, batch):
            for start in range(0, max(len(listed.names), 1), _NAMES):
                files.add_folder(listed.folder, listed.names[start : start + _NAMES])
                await pause()
            for name in listed.folders:
                path = f"{listed.folder}/{name}"
                if name not in SKIPPED and may_enter(path):
                    queue.append(path)
                await pause()


def listed_in(folders: Iterable[str]) -> list[Listed]:
    """What is in folders; those that cannot be read are left out."""
    found: list[Listed] = []
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                kinds = [(e.name, e.is_dir(follow_symlinks=False)) for e in entries]
        except OSError:
            continue
        names = [name for name, is_folder in kinds if not is_folder and is_source(name)]
        found.append(Listed(folder, sorted(n for n, is_folder in kinds if is_folder), names))
    return found


class _Pause:
    """Lets others run once a slice of time is used up."""

    def __init__(self) -> None:
        self._end = time.perf_counter() + SLICE_SECONDS

    async def __call__(self) -> None:
        if time.perf_counter() >= self._end:
            await asyncio.sleep(0)
            self._end = time.perf_counter() + SLICE_SECONDS
