"""What goes into a completion or an edit and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from dg_engine.job import CanvasJob, DoneKind

from dg_lsp.drafts import Draft
from dg_lsp.prompts.base import Section

OnDraft = Callable[[Draft], None]


class Source(msgspec.Struct, frozen=True):
    """A file: its path, its LSP language id and its text with the line breaks it has."""

    path: str
    language: str
    text: str


class Completion(msgspec.Struct, frozen=True):
    """What to insert at the cursor; empty with a reason when there is nothing to offer."""

    insert: str
    done: DoneKind
    steps: int
    forwards: int
    confidence: float
    """Geometric mean of the judged tokens' probabilities, 0 to 1."""
    ms: dict[str, float]
    """Milliseconds by stage: prompt, tokenise, the engine's own, suggest, and total."""
    reason: str = ""
    alternatives: list[str] = []
    """Further texts that differ from `insert`, best first."""


class Edit(msgspec.Struct, frozen=True):
    """New text for whole lines, without the last one's line break."""

    new_text: str
    done: DoneKind
    steps: int
    forwards: int
    ms: dict[str, float]
    reason: str = ""
    """Why `new_text` is the old text, one sentence."""


class Explanation(msgspec.Struct, frozen=True):
    """A job as it would be sent, and its prompt as people read it."""

    job: CanvasJob
    sections: list[Section]
    multi_line: bool
