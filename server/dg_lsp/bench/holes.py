"""Held-out holes: the questions that a model is measured by, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

FOLDER = Path(__file__).resolve().parents[3] / "bench" / "quality"
"""Where a checkout keeps the holes; an installed package has none."""
HOLES = FOLDER / "holes_v1.jsonl"
FILES = {
    "line": HOLES,
    "rest": HOLES,
    "lines": FOLDER / "lines_v1.jsonl",
    "span": FOLDER / "span_v1.jsonl",
    "two": FOLDER / "two_v1.jsonl",
    "quiet": FOLDER / "quiet_v1.jsonl",
}
"""By kind: a whole line, the rest of one, two to five lines, from one character to another, two
holes of one line at once, and places where nothing is missing."""


class Hole(msgspec.Struct, frozen=True):
    """One held-out hole: the text before it, what stood there, the text after it.

    A `second` hole follows behind the text `between` the two; `suffix` is behind the last.
    """

    id: str
    prefix: str
    middle: str
    suffix: str
    path: str
    kind: str = "line"
    between: str = ""
    second: str = ""

    @property
    def following(self) -> str:
        """What stands directly behind the first hole."""
        return self.between or self.suffix

    @property
    def ends_its_line(self) -> bool:
        """Whether nothing follows the hole on its line, so that blanks at its end say nothing."""
        return not self.following.partition("\n")[0].strip()


def read_holes(path: Path, limit: int | None = None) -> list[Hole]:
    """One JSON object a line, the first `limit` of each kind.

    Raises OSError, and ValueError that names a bad line.
    """
    holes: list[Hole] = []
    counts: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            hole = msgspec.json.decode(line, type=Hole)
        except msgspec.MsgspecError as error:
            raise ValueError(
                f"{path}:{number}: {error}; each line needs id, prefix, middle, suffix and path."
            ) from error
        counts[hole.kind] = counts.get(hole.kind, 0) + 1
        if limit is None or counts[hole.kind] <= limit:
            holes.append(hole)
    return holes


def holes_of(kinds: Sequence[str], limit: int | None = None) -> list[Hole]:
    """The checkout's own holes of some kinds, in the order of FILES; raises as `read_holes`."""
    return [
        hole
        for path in dict.fromkeys(FILES[kind] for kind in FILES if kind in kinds)
        for hole in read_holes(path, limit)
        if hole.kind in kinds
    ]
