"""The tokenizer of a checkpoint folder, without torch or transformers."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

import tokenizers

from dg_engine.engine import EngineError


class Tokenizer:
    """Text to ids and back, by a checkpoint's tokenizer.json.

    Special tokens written in source code (`<eos>` as text) are encoded as plain characters.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise EngineError(
                f"{path} cannot be read ({error.strerror}); "
                "copy the checkpoint's tokenizer.json there."
            ) from error
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(raw)
        except Exception as error:  # the library raises bare Exception
            raise EngineError(f"{path} is not a tokenizer file; copy it again.") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True
        self.digest = hashlib.sha256(raw).hexdigest()

    @property
    def vocab_size(self) -> int:
        """Ids in all, special ones included."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; nothing is added in front or behind."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: list[int]) -> str:
        """Text of ids; special tokens leave no trace."""
        return self._tokenizer.decode(
            [i for i in ids if i not in self.special_ids], skip_special_tokens=True
        )

    def token_id(self, token: str) -> int | None:
        """Id of a token by its exact name, None when the vocabulary lacks it."""
        return self._tokenizer.token_to_id(token)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that never stand for text."""
        added = self._tokenizer.get_added_tokens_decoder()
        return frozenset(i for i, token in added.items() if token.special)

    @cached_property
    def line_break_ids(self) -> frozenset[int]:
        """Ids whose text holds a line feed or carriage return."""
        texts = self._tokenizer.decode_batch(
            [[i] for i in range(self.vocab_size)], skip_special_tokens=False
        )
        return frozenset(i for i, text in enumerate(texts) if "\n" in text or "\r" in text)
