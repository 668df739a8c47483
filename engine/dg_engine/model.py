"""What the solver asks of a model: encode the prompt, denoise canvases, turn rows into logits."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from dg_engine.model_config import ModelConfig


class KeyValues(Protocol):
    """Keys and values of an encoded prompt."""

    @property
    def length(self) -> int:
        """Tokens encoded."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory held."""
        ...

    def crop(self, length: int) -> KeyValues:
        """The first `length` tokens; shares memory."""
        ...


class DenoiserModel(Protocol):
    """One set of weights in two modes: a causal encoder and a two-sided decoder."""

    config: ModelConfig
    device: torch.device
    dtype: torch.dtype
    reuses_prefixes: bool
    """Whether `encode` can go on from a cropped prefix."""

    @property
    def parameters(self) -> int:
        """Weights in all."""
        ...

    def encode(self, ids: Tensor, past: KeyValues | None) -> tuple[Tensor, KeyValues]:
        """Read prompt tokens causally behind `past`.

        ids int64 [tokens] -> hidden [tokens, hidden_size], keys and values of past + tokens.
        """
        ...

    def encode_rows(self, ids: Tensor, past: KeyValues) -> Tensor:
        """Read several continuations of one prompt causally; keeps nothing.

        ids int64 [rows, tokens] -> hidden [rows, tokens, hidden_size].
        """
        ...

    def decode(
        self, ids: Tensor, conditioning: Tensor | None, past: KeyValues, lengths: Tensor | None
    ) -> Tensor:
        """One two-sided forward over canvases behind one prompt.

        Args:
            ids: int64 [rows, canvas].
            conditioning: soft embeddings [rows, canvas, hidden_size], None on the first step.
            past: the encoded prompt.
            lengths: int64 [rows], canvas positions in use per row; None when all are.

        Returns:
            hidden [rows, canvas, hidden_size]; positions beyond a row's length are undefined.
        """
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """Softcapped logits, float32 [..., vocab] from hidden [..., hidden_size]."""
        ...

    def soft_embedding(self, processed: Tensor) -> Tensor:
        """softmax(processed) @ embedding * sqrt(hidden_size): [..., vocab] -> [..., hidden]."""
        ...

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embedding of ids: [...] -> [..., hidden_size]."""
        ...
