"""Print the demo's cursor, FILE:LINE:COL, in a copy of a standard-library file with a hole.

The file differs a little between Python versions, so the place is found by its text.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

MODULE = "filecmp.py"
"""No three lines in a row of it stand in dg-tiny's training text."""
LINE = "            b_x = os.path.join(self.right, x)"
"""The line whose rest is cut out ..."""
KEPT = "            b_x = "
"""... behind this part of it."""


def demo_text() -> tuple[str, int, int]:
    """The file with the hole, and line and column of the cursor, from 1."""
    path = Path(sysconfig.get_path("stdlib"), MODULE)
    lines = path.read_text(encoding="utf-8").split("\n")
    index = lines.index(LINE)
    lines[index] = KEPT
    return "\n".join(lines), index + 1, len(KEPT) + 1


def main() -> None:
    """Write the file with the hole and print where the cursor stands."""
    try:
        text, line, column = demo_text()
    except (OSError, ValueError):
        sys.exit(f"This Python's {MODULE} lacks the demo's line; use another Python.")
    # Not below the checkout: what Git ignores there is excluded from completion, rightly.
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache, "dg-lsp", "demo")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODULE).write_text(text, encoding="utf-8")
    print(f"{folder / MODULE}:{line}:{column}")


if __name__ == "__main__":
    main()
