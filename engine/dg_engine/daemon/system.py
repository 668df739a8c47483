"""What the daemon and its windows ask of the system: `posix` or `windows`, with the same names."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from dg_engine.daemon import windows as system
else:
    from dg_engine.daemon import posix as system

runtime_place = system.runtime_place

__all__ = ["runtime_place", "system"]
