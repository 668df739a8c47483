"""transformers' DiffusionGemma behind our model interface: the reference, and for checkpoints
that the compact forward does not carry."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from dg_engine.engine import EngineError
from dg_engine.lists import ints
from dg_engine.model import KeyValues
from dg_engine.model_config import ModelConfig


class ReferenceCache:
    """Wraps transformers' cache; sliding layers drop old keys, so it cannot be cropped."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache

    @property
    def length(self) -> int:
        """Tokens encoded."""
        return int(self.cache.get_seq_length())

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(
            int(t.numel()) * int(t.element_size())
            for layer in self.cache.layers
            for t in (layer.keys, layer.values)
        )

    def crop(self, length: int) -> ReferenceCache:
        """Only the whole; see the class."""
        if length != self.length:
            raise EngineError("The reference engine cannot cut a cached prompt; encode it again.")
        return self

    def copied(self, rows: int) -> Any:
        """A cache of its own for a batch of `rows`, which may grow."""
        cache = copy.deepcopy(self.cache)
        if rows > 1:
            cache.batch_repeat_interleave(rows)
        return cache


class ReferenceModel:
    """DenoiserModel by transformers; see dg_engine.model for the methods."""

    reuses_prefixes = False

    def __init__(
        self, folder: Path, config: ModelConfig, *, device: torch.device, dtype: torch.dtype
    ) -> None:
        try:
            from transformers import DiffusionGemmaForBlockDiffusion
        except ImportError as error:
            raise EngineError(
                f"{folder} needs the transformers package; install dg-lsp[reference]."
            ) from error
        self.config = config
        self.device = device
        self.dtype = dtype
        model = cast(Any, DiffusionGemmaForBlockDiffusion).from_pretrained(folder, dtype=dtype)
        # On a CPU the default loop over experts is several times slower.
        model.set_experts_implementation("grouped_mm")
        self._model: Any = model.to(device).eval()

    @property
    def parameters(self) -> int:
        """Weights of the text decoder."""
        return sum(int(p.numel()) for p in self._model.model.decoder.parameters())

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embedding [..., hidden]."""
        return self._model.model.decoder.embed_tokens(ids)

    def encode(self, ids: Tensor, past: KeyValues | None) -> tuple[Tensor, ReferenceCache]:
        """See DenoiserModel.encode."""
        from transformers import DynamicCache

        if past is None:
            text: Any = self._model.config.get_text_config(decoder=True)
            cache: Any = DynamicCache(config=text)
        else:
            cache = _own(past).copied(1)
        out = self._model.model.encoder(input_ids=ids[None], past_key_values=cache)
        return out.last_hidden_state[0], ReferenceCache(cache)

    def encode_rows(self, ids: Tensor, past: KeyValues) -> Tensor:
        """See DenoiserModel.encode_rows."""
        cache = _own(past).copied(ids.shape[0])
        return self._model.model.encoder(input_ids=ids, past_key_values=cache).last_hidden_state

    def decode(
        self, ids: Tensor, conditioning: Tensor | None, past: KeyValues, lengths: Tensor | None
    ) -> Tensor:
        """See DenoiserModel.decode; rows of unequal length run one by one."""
        if lengths is not None:
            rows = [
                self.decode(
                    ids[r : r + 1, :n],
                    None if conditioning is None else conditioning[r : r + 1, :n],
                    past,
                    None,
                )
                for r, n in enumerate(ints(lengths))
            ]
            width = ids.shape[1]
            return torch.cat(
                [torch.nn.functional.pad(h, (0, 0, 0, width - h.shape[1])) for h in rows]
            )
        decoder = self._model.model.decoder
        cache = _own(past).copied(ids.shape[0])
        if conditioning is None:
            return decoder(decoder_input_ids=ids, past_key_values=cache).last_hidden_state
        mixer = decoder.self_conditioning

        def replace(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            return inputs[0], conditioning

        hook = mixer.register_forward_pre_hook(replace)
        try:
            return decoder(decoder_input_ids=ids, past_key_values=cache).last_hidden_state
        finally:
            hook.remove()

    def logits(self, hidden: Tensor) -> Tensor:
        """Softcapped logits; `hidden` is normed already."""
        cap = self.config.softcap
        return torch.tanh(self._model.lm_head(hidden).float() / cap) * cap

    def soft_embedding(self, processed: Tensor) -> Tensor:
        """Full sum over the vocabulary."""
        table = self._model.model.decoder.embed_tokens
        probabilities = torch.softmax(processed, -1, dtype=torch.float32).to(table.weight.dtype)
        return torch.matmul(probabilities, table.weight) * table.embed_scale.to(self.dtype)


def _own(past: KeyValues) -> ReferenceCache:
    if not isinstance(past, ReferenceCache):
        raise TypeError("keys and values of another model")
    return past
