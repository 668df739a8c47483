"""A completer over an engine that says what a test tells it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from dg_engine.tokenizer import Tokenizer
from dg_lsp.completion import Completer
from dg_lsp.prompts import prompt_format_for

from tests.scripted_engine import ScriptedEngine
from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(write_tokenizer(tmp_path_factory.mktemp("tiny"), FIM_TOKENS))


class Scripted:
    """A completer and the engine behind it; `settings` are those that are not the format's."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        answers: Iterable[str],
        *,
        drafts: int = 1,
        score: float = -0.1,
        **settings: object,
    ) -> None:
        self.engine = ScriptedEngine(tokenizer, answers, drafts=drafts, score=score)
        prompt_format = prompt_format_for(tokenizer, Path("tiny"))
        infill = msgspec.structs.replace(prompt_format.settings, **settings)
        self.completer = Completer(self.engine, tokenizer, prompt_format, infill)
