"""The contract of prompt formats: how a view of code becomes tokens for one kind of model."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
from dg_engine.job import Judge

from dg_lsp.prompts.settings import Budget, InfillSettings
from dg_lsp.prompts.view import CursorView


class Origin(enum.StrEnum):
    """Where a part of a prompt comes from."""

    MARK = "mark"
    """The format itself."""
    INSTRUCTION = "instruction"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTEXT = "context"
    """Another file, or another place of the same."""


class Section(msgspec.Struct, frozen=True):
    """A named part of a prompt, as people read it."""

    name: str
    text: str
    origin: Origin = Origin.MARK


class Prompt(msgspec.Struct, frozen=True):
    """A prompt in tokens, and what the canvas behind it needs to know."""

    ids: list[int]
    suffix: list[int]
    """Ids of the text that follows the hole, for pins; no special tokens."""
    describe: Callable[[], list[Section]]
    """Makes `sections`: a keystroke needs none."""

    @property
    def sections(self) -> list[Section]:
        """The parts of the prompt."""
        return self.describe()


class PromptFormat(Protocol):
    """Writes prompts for one kind of model."""

    @property
    def name(self) -> str:
        """The format's name, as shown to people."""
        ...

    @property
    def settings(self) -> InfillSettings:
        """The settings that suit models of this kind."""
        ...

    @property
    def encode_ms(self) -> float:
        """Milliseconds spent in the tokenizer so far."""
        ...

    def build(self, view: CursorView, budget: Budget) -> Prompt:
        """The prompt that asks for the text at a cursor."""
        ...

    def build_edit(self, view: CursorView, old: str, instruction: str, budget: Budget) -> Prompt:
        """The prompt that asks for new text in place of `old`, which stands in neither side."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of text for the canvas."""
        ...

    def judge(self, settings: InfillSettings, suffix: Sequence[int]) -> Judge:
        """How raced hole lengths in front of `suffix` are ranked."""
        ...

    def answer(self, ids: list[int]) -> str:
        """The text of a filled hole, up to where the model says that it ends."""
        ...
