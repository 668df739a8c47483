"""The daemon's process: `python -m dg_engine.daemon`, detached; `dg-lsp serve` is the same here."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from importlib import metadata

from dg_engine.daemon.daemon import Daemon, Limits
from dg_engine.daemon.system import runtime_place, system
from dg_engine.engine import EngineError


def installed_version() -> str:
    """Of dg-lsp."""
    return metadata.version("dg-lsp")


def serve(limits: Limits, *, detached: bool = False) -> bool:
    """Serve until nobody needs it; False when another daemon does.

    `detached` returns as soon as the socket is open, and serves in a process that is nobody's
    child: editors end the children of their servers. On Windows it is the process that stays,
    which `windows.start` made independent. Raises EngineError when it cannot serve.
    """
    place = runtime_place()
    os.umask(0o077)
    daemon = Daemon(place, installed_version(), limits)
    try:
        if not daemon.open():
            return False
        if detached and system.leave():
            return True
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
        )
        asyncio.run(daemon.run())
    except OSError as error:
        message = f"The daemon cannot serve in {place.folder} ({error.strerror})."
        raise EngineError(message) from None
    return True


def main() -> None:
    """Entry point of the process."""
    parser = argparse.ArgumentParser(prog="dg_engine.daemon", description=__doc__)
    defaults = Limits()
    parser.add_argument("--unload-after", type=float, default=defaults.unload_after_s, metavar="S")
    parser.add_argument("--exit-after", type=float, default=defaults.exit_after_s, metavar="S")
    options = parser.parse_args()
    try:
        serve(Limits(options.unload_after, options.exit_after), detached=True)
    except EngineError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
