"""A small model that knows fill-in-the-middle prompts, and prompts as people read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from dg_engine.tokenizer import Tokenizer
from dg_lsp.prompts import PromptFormat, prompt_format_for

from tests.tiny_tokenizers import CHAT_TOKENS, FIM_TOKENS, write_tokenizer


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tiny")
    return Tokenizer(write_tokenizer(folder, [*FIM_TOKENS, "<file_end>"]))


@pytest.fixture
def fim(tiny: Tokenizer) -> PromptFormat:
    return prompt_format_for(tiny, Path("tiny"))


def shown(tokenizer: Tokenizer, ids: list[int]) -> str:
    """Ids as text, special tokens by their names."""
    names = {tokenizer.token_id(t): t for t in (*FIM_TOKENS, *CHAT_TOKENS, "<file_end>")}
    return "".join(names.get(i) or tokenizer.decode([i]) for i in ids)
