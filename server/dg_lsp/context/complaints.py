"""What other servers say is wrong, as far as an editor has passed it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dg_lsp.documents import Document
from dg_lsp.lines import body_of
from dg_lsp.uris import normalised

NEAR_LINES = 8
"""Above and below the cursor."""
MOST_COMPLAINTS = 16
"""Of one document, the last ones told."""
_MOST_CHARS = 200


class _Complaint(NamedTuple):
    line: int
    text: str
    """The line that it is about: once that is another, nobody knows whether it still holds."""
    message: str


class Complaints:
    """Diagnostics by document."""

    def __init__(self) -> None:
        self._told: dict[str, list[_Complaint]] = {}

    def told(self, document: Document, messages: Sequence[tuple[int, str]]) -> None:
        """Lines of a document, from zero, and what is wrong there."""
        held = self._told.setdefault(normalised(document.uri), [])
        for line, message in messages:
            if 0 <= line < document.lines.count:
                text = body_of(document.lines[line])
                found = _Complaint(line, text, " ".join(message.split())[:_MOST_CHARS])
                held[:] = [*(c for c in held if c != found), found][-MOST_COMPLAINTS:]

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self._told.pop(normalised(uri), None)

    def near(self, document: Document, line: int) -> list[str]:
        """What is wrong around a line and still stands there, with the lines from one."""
        lines = document.lines
        return [
            f"line {c.line + 1}: {c.message}"
            for c in self._told.get(normalised(document.uri), ())
            if abs(c.line - line) <= NEAR_LINES
            and c.line < lines.count
            and body_of(lines[c.line]) == c.text
        ]
