"""Diagnostics as clients pass them on, and where they stand in a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dg_lsp.documents import Document
from dg_lsp.next_edit import diagnostics
from dg_lsp.positions import Encoding, Range

WARNING = 2
"""DiagnosticSeverity.Warning; what counts more says that something is wrong, what counts less how
it could be better."""
UNNECESSARY = 1
"""DiagnosticTag.Unnecessary: what nobody uses."""


class Diagnostic(msgspec.Struct, frozen=True, rename="camel"):
    """What we read of a Diagnostic, and what goes back with its action."""

    range: Range
    message: str
    severity: int | None = None
    code: int | str | None = None
    source: str | None = None
    tags: list[int] | None = None
    data: Any = None


def placed(
    document: Document, found: Sequence[Diagnostic], encoding: Encoding
) -> list[diagnostics.Diagnostic]:
    """Errors and warnings within one line, in code points of the document's version."""
    told: list[diagnostics.Diagnostic] = []
    for one in found[: diagnostics.MOST_TOLD]:
        start, end = one.range.start, one.range.end
        is_wrong = one.severity is None or one.severity <= WARNING
        if is_wrong and start.line == end.line and UNNECESSARY not in (one.tags or ()):
            line, first = document.place(start, encoding)
            _, last = document.place(end, encoding)
            told.append(diagnostics.Diagnostic(line, first, last, one.message))
    return told
