"""Which ids of a checkpoint end a hole, break a line or are no text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dg_engine.engine import EngineError
from dg_engine.tokenizer import Tokenizer


class VocabularySets(NamedTuple):
    """Sets of token ids."""

    eos: frozenset[int]
    line_breaks: frozenset[int]
    special: frozenset[int]

    @classmethod
    def of(cls, eos: Iterable[int], tokenizer: Tokenizer | None) -> VocabularySets:
        """The sets of a tokenizer; end tokens alone where there is none."""
        if tokenizer is None:
            return cls(frozenset(eos), frozenset(), frozenset())
        return cls(frozenset(eos), tokenizer.line_break_ids, tokenizer.special_ids)


def vocabulary_sets(model: str, generation: Mapping[str, Any]) -> VocabularySets:
    """The sets of a checkpoint folder, by its tokenizer.json and generation config.

    A folder without a tokenizer (random weights of full size, for measurements) has end tokens
    only. Raises EngineError for a model that is no folder.
    """
    folder = Path(model)
    if not folder.is_dir():
        raise EngineError(f"{model} is no folder; download the checkpoint and name its folder.")
    ends: int | list[int] = generation.get("eos_token_id", [])
    tokenizer = Tokenizer(folder) if (folder / "tokenizer.json").exists() else None
    return VocabularySets.of([ends] if isinstance(ends, int) else ends, tokenizer)
