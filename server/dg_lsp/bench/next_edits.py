"""Cases of next edits: a file, an edit in it, and what its author changed elsewhere in it."""

from __future__ import annotations

import difflib
from pathlib import Path

import msgspec

from dg_lsp.lines import Lines
from dg_lsp.next_edit.tokens import tokens_of

CASES = Path(__file__).resolve().parents[3] / "bench" / "next_edit" / "cases.jsonl"
KINDS = ("repeat", "rename", "other", "trap")
"""In the order of tables."""


class LineChange(msgspec.Struct, frozen=True):
    """A line, from zero, and what it becomes; both without the line break."""

    line: int
    new: str


class Case(msgspec.Struct, frozen=True):
    """One edit, and the edits that should follow from it."""

    name: str
    kind: str
    licence: str
    source: str
    """The package and its version, or the two versions between which the change was made."""
    path: str
    text: str
    first: LineChange
    """What the user does."""
    rest: list[LineChange]
    """What is left to do; empty where nothing should be proposed."""
    also: list[LineChange] = []
    """Lines that the newer version has otherwise for another reason: proposed, they are right."""
    note: str = ""

    @property
    def begun(self) -> Lines:
        """The file once the user has edited."""
        return changed(Lines.of(self.text), self.first)

    @property
    def target(self) -> Lines:
        """The file when all is done."""
        lines = self.begun
        for change in self.rest:
            lines = changed(lines, change)
        return lines

    def is_right(self, line: int, text: str) -> bool:
        """Whether a line is to become this text, without its break."""
        return LineChange(line, text) in self.rest or LineChange(line, text) in self.also

    def is_nearer(self, line: int, was: str, text: str) -> bool:
        """Whether a line would have fewer tokens to change than it has now."""
        wanted = [change.new for change in (*self.rest, *self.also) if change.line == line]
        return any(_tokens_between(text, new) < _tokens_between(was, new) for new in wanted)


def _tokens_between(old: str, new: str) -> int:
    """How many tokens have to be taken away or added."""
    a, b = tokens_of(old), tokens_of(new)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    changes = (code for code in matcher.get_opcodes() if code[0] != "equal")
    return sum(i2 - i1 + j2 - j1 for _, i1, i2, j1, j2 in changes)


def changed(lines: Lines, change: LineChange) -> Lines:
    """A text with one line changed."""
    return lines.replaced(change.line, change.line + 1, [change.new + "\n"])


def read_cases(path: Path = CASES) -> list[Case]:
    """The cases of a file; raises OSError, and ValueError with one sentence."""
    found: list[Case] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            found.append(msgspec.json.decode(line, type=Case))
        except msgspec.MsgspecError as error:
            raise ValueError(f"Line {number} of {path} is no case: {error}.") from None
    return found
