"""What changes on the disk below watched folders, told on the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

FOLDERS_AT_ONCE = 500
"""Watching them takes about 5 ms, in which nothing else runs."""
MOST_WATCHES = 16
_DEBOUNCE_MS = 300
_STEP_MS = 100
"""How often each watch wakes up."""
_ROUND_MS = 500
"""How long after its begin a watch is told of at the latest."""


class Watch:
    """Watches folders, not what is below them: an ignored folder costs nothing."""

    def __init__(
        self, told: Callable[[list[str]], None], begun: Callable[[list[str]], None]
    ) -> None:
        """Both are called on the event loop.

        Args:
            told: with the paths that came, went or changed.
            begun: with folders that are watched from now on; what changed in them before is not
                told.
        """
        self._told = told
        self._begun = begun
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def is_full(self) -> bool:
        """Whether no more folders can be added; those that are watched already stay so."""
        return len(self._threads) >= MOST_WATCHES

    def add(self, folders: Sequence[str]) -> None:
        """Watch more folders, as far as there is room."""
        loop = asyncio.get_running_loop()
        for start in range(0, len(folders), FOLDERS_AT_ONCE):
            if self.is_full:
                logger.info("Too many folders to watch; changes in some are seen on use.")
                return
            part = list(folders[start : start + FOLDERS_AT_ONCE])
            thread = threading.Thread(target=self._run, args=(part, loop), daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Stop; nothing is told any more."""
        self._stop.set()

    def _run(self, folders: list[str], loop: asyncio.AbstractEventLoop) -> None:
        import watchfiles  # in the thread: it takes a while

        begun = False
        try:
            for changes in watchfiles.watch(
                *folders,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                rust_timeout=_ROUND_MS,
                yield_on_timeout=True,
                stop_event=self._stop,
                recursive=False,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                if self._stop.is_set():
                    return
                if not begun:
                    loop.call_soon_threadsafe(self._begun, folders)
                    begun = True
                if changes:
                    loop.call_soon_threadsafe(self._told, sorted({path for _, path in changes}))
        except (OSError, RuntimeError) as error:
            # A folder that is gone, too many watches, a loop that has ended: files are looked at
            # again when they are used, so what is lost is only new ones.
            logger.info("Folders are not watched (%s).", type(error).__name__)
