"""What goes into a completion or an edit and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from dg_engine.job import CanvasJob, DoneKind

from dg_lsp.drafts import Draft
from dg_lsp.lines import Lines
from dg_lsp.marks import Mark
from dg_lsp.prompts.base import Section
from dg_lsp.prompts.view import Snippet

OnDraft = Callable[[Draft], None]


class Source(msgspec.Struct, frozen=True):
    """A file: its path, its LSP language id and its text with the line breaks it has."""

    path: str
    language: str
    text: str
    context: tuple[Snippet, ...] = ()
    """What may help from elsewhere."""


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
    seen: bytes = b""
    """The key of the prompt and canvas that the model saw."""

    @property
    def is_mere_draft(self) -> bool:
        """Whether time was up before anything said how good the text is: a draft may be no more
        than the first step's guess."""
        return self.done is DoneKind.DEADLINE and not self.confidence


class EditRequest(msgspec.Struct, frozen=True):
    """Which lines to change, and how."""

    lines: Lines
    first: int
    """First line, from zero."""
    last: int
    """Last line, included."""
    instruction: str
    path: str
    language: str


class EditDraft(msgspec.Struct, frozen=True):
    """The lines as they stand after one denoise step."""

    step: int
    """Denoise steps since the edit began."""
    text: str
    entropy: float
    """Mean nats over the positions that may change."""


OnEditDraft = Callable[[EditDraft], None]


class Edit(msgspec.Struct, frozen=True):
    """New text for whole lines, without the last one's line break."""

    new_text: str
    done: DoneKind
    steps: int
    forwards: int
    ms: dict[str, float]
    reason: str = ""
    """Why `new_text` is the old text, one sentence."""
    bad_input: bool = False
    """Whether the lines themselves cannot be edited, whatever the engine."""
    breaks_syntax: bool = False
    """Whether the lines parse worse with it, among those around, than they did."""


class FillRequest(msgspec.Struct, frozen=True):
    """Which marks to fill."""

    lines: Lines
    marks: list[Mark]
    path: str
    language: str


class Fill(msgspec.Struct, frozen=True):
    """A text for each mark, empty where there is none."""

    texts: list[str]
    done: DoneKind
    steps: int
    forwards: int
    ms: dict[str, float]
    reason: str = ""
    """Why there is no text at all, one sentence."""


class Explanation(msgspec.Struct, frozen=True):
    """A job as it would be sent, and its prompt as people read it."""

    job: CanvasJob
    sections: list[Section]
    multi_line: bool
