"""What runs single canvases behind one prompt each: vLLM here, or a server that has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Protocol

from dg_engine.vllm_plugin.drafts import Draft
from dg_engine.vllm_plugin.request import CanvasRequest, score_request
from dg_engine.vllm_plugin.vocabulary import VocabularySets


class CanvasBackend(Protocol):
    """Runs canvas requests."""

    def run(
        self, prompt: list[int], request: CanvasRequest, *, name: str, priority: int
    ) -> AsyncIterator[Draft]:
        """Drafts of a request, the last of which has a final code; leaving early aborts it.

        Raises EngineError with one sentence when it cannot be run to its end.
        """
        ...


class Limits(NamedTuple):
    """What the backend takes."""

    canvas_length: int
    vocab_size: int
    max_tokens: int
    """Prompt and canvas together."""


class Host(NamedTuple):
    """What a job is run with."""

    backend: CanvasBackend
    limits: Limits
    sets: VocabularySets
    clock: Callable[[], float]
    """Seconds, monotonic."""
    name: Callable[[], str]
    """A request name that no other has."""


async def score(
    host: Host, tokens: list[int], start: int, priority: int
) -> tuple[list[float], int]:
    """Causal log-probabilities of tokens[start:], and the forwards of the longest request.

    A request scores as many tokens as a canvas holds; `start` is at least 2.
    """
    length = host.limits.canvas_length
    begins = range(start - 1, len(tokens) - 1, length - 1)

    async def piece(begin: int) -> Draft:
        ids = tokens[begin : begin + length]
        drafts = host.backend.run(
            tokens[:begin], score_request(ids), name=host.name(), priority=priority
        )
        (draft,) = [draft async for draft in drafts]
        return draft

    found = await asyncio.gather(*(piece(begin) for begin in begins))
    scores = [value for draft in found for value in draft.scores[:-1]]
    return scores, max((draft.forwards for draft in found), default=0)
