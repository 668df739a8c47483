"""Lines of a stage as they come; what fails is a line of its own and the rest goes on."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable

MARK = "| "
"""In front of a stage's own lines; vLLM prints others."""
FAILED = " failed: "
PATIENCE_SECONDS = 240.0
"""For one measurement; a whole stage has a limit of its own."""


class Report:
    """Prints, and remembers whether anything failed."""

    failed = False
    taken: Callable[[], None] = staticmethod(lambda: None)
    """Called behind every measurement, so that what is known lies in a file."""

    def tell(self, line: str) -> None:
        """One line, at once."""
        print(f"{MARK}{line}", flush=True)

    async def take(
        self, name: str, measured: Awaitable[list[str]], patience_s: float = PATIENCE_SECONDS
    ) -> None:
        """The lines of a measurement, or one that says why there are none."""
        try:
            async with asyncio.timeout(patience_s):
                lines = await measured
        except TimeoutError:
            self._fail(name, f"nothing within {patience_s:g} s")
        except Exception as error:  # the other measurements go on
            self._fail(name, _sentence(error))
        else:
            for line in lines:
                self.tell(line)
        self.taken()

    async def whole(self, stage: Awaitable[None]) -> None:
        """A whole stage, which may end before anything was measured."""
        try:
            await stage
        except (Exception, SystemExit) as error:
            self._fail("the stage", _sentence(error))

    def _fail(self, name: str, reason: str) -> None:
        self.failed = True
        traceback.print_exc()
        self.tell(f"  {name}{FAILED}{reason}")


def _sentence(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}".rstrip(": ")
