"""Prompts: which tokens a model reads before it fills a canvas."""

from __future__ import annotations

from pathlib import Path

from dg_engine.engine import EngineError
from dg_engine.tokenizer import Tokenizer

from dg_lsp.prompts import chat, fill_in_the_middle
from dg_lsp.prompts.base import Prompt, PromptFormat, Section
from dg_lsp.prompts.settings import Budget, HoleSettings, InfillSettings
from dg_lsp.prompts.view import CursorView

__all__ = [
    "Budget",
    "CursorView",
    "HoleSettings",
    "InfillSettings",
    "Prompt",
    "PromptFormat",
    "Section",
    "prompt_format_for",
]


def prompt_format_for(tokenizer: Tokenizer, folder: Path) -> PromptFormat:
    """The prompt format whose special tokens the tokenizer of `folder` has; else EngineError."""

    def has(tokens: tuple[str, ...]) -> bool:
        return all(tokenizer.token_id(token) is not None for token in tokens)

    if has(fill_in_the_middle.NEEDED):
        return fill_in_the_middle.FillInTheMiddle(tokenizer)
    if has(chat.NEEDED):
        return chat.Chat(tokenizer)
    raise EngineError(
        f"The tokenizer in {folder} has neither fill-in-the-middle tokens "
        f"({', '.join(fill_in_the_middle.NEEDED)}) nor chat turns ({', '.join(chat.NEEDED)}); "
        "choose a checkpoint that has."
    )
