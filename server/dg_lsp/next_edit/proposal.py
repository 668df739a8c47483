"""A proposed edit: as small as it can be, and never one that takes back what the user did."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from dg_lsp.lines import Lines, alike_ends, body_of
from dg_lsp.next_edit.history import Edited


class Origin(enum.StrEnum):
    """What a proposal was made from."""

    RENAME = "rename"
    """A name that lost its only binding by the edit: its other uses, by tree-sitter."""
    DIAGNOSTIC = "diagnostic"
    """A name that an edit gave another name, where another server says since then that it is
    unknown."""
    REPEAT = "repeat"
    """The same change of the same tokens as in several edits before, as text."""
    MODEL = "model"
    """The same change as in one edit, where the model agrees."""


class Proposal(msgspec.Struct, frozen=True):
    """New text within one line of one version of a document, in code points."""

    line: int
    start: int
    end: int
    text: str
    """Neither its first nor its last character is what stands there; no line break."""
    origin: Origin

    def made(self, lines: Lines) -> str:
        """The line with the proposal in it, and its break."""
        line = lines[self.line]
        return line[: self.start] + self.text + line[self.end :]

    def applied(self, lines: Lines) -> Lines:
        """The text with the proposal in it."""
        return lines.replaced(self.line, self.line + 1, [self.made(lines)])


def minimal(lines: Lines, line: int, new: str, origin: Origin) -> Proposal:
    """The least replacement that makes a line `new`, both without their breaks.

    When that is what it is already, the text and the range are empty.
    """
    old = body_of(lines[line])
    head, tail = alike_ends(old, new)
    return Proposal(line, head, len(old) - tail, new[head : len(new) - tail], origin)


def restores(proposal: Proposal, lines: Lines, history: Sequence[Edited]) -> bool:
    """Whether a proposal takes back what the user did lately, anywhere.

    It does when it touches a line that was edited, or when it makes of a line what an edited line
    was before.
    """
    made = body_of(proposal.made(lines)).strip()
    for edit in history:
        if edit.first <= proposal.line < edit.end:
            return True
        kept = {body_of(line).strip() for line in edit.new(lines)}
        if made in {body_of(line).strip() for line in edit.old} - kept:
            return True
    return False
