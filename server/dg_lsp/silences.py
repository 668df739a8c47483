"""From what came of a request for a suggestion to why there is none."""

from __future__ import annotations

import math

from dg_engine.job import DoneKind

from dg_lsp.results import Completion
from dg_lsp.status import ModelState, ModelStatus, Silence, Why

NOT_OPEN = Silence(Why.NOT_OPEN, "The document is not open in the server.")
OLDER = Silence(Why.OVERTAKEN, "The request was for another version of the document.")
CHANGED = Silence(Why.OVERTAKEN, "The document changed before there was an answer.")
SUPERSEDED = Silence(Why.OVERTAKEN, "A newer request for the document took its place.")
REJECTED = Silence(Why.REJECTED, "You went another way here; ask for it to see it again.")
PAUSED = Silence(Why.PAUSED, "Suggestions are switched off here by the setting enabled.")

_STAGES = {
    "wait": "the pause in which more might have been typed",
    "prompt": "making the prompt",
    "tokenise": "the tokenizer",
    "encode": "reading the prompt",
    "causal": "the model's left-to-right draft",
    "steps": "denoising",
    "judge": "choosing between lengths",
    "suggest": "checking the text",
    "engine": "waiting for the engine's first draft",
}


def without_engine(model: ModelStatus, sentence: str) -> Silence:
    """Why there is no completer: the model loads, or the engine is down."""
    loads = model.state in (ModelState.LOADING, ModelState.READY)
    return Silence(Why.LOADING if loads else Why.ENGINE_DOWN, model.message or sentence)


def unsure(confidence: float, least: float, wanted: float) -> Silence:
    """The model is less sure of what it proposes than is `wanted`.

    `least` is the user's setting; a place may want more.
    """
    percent = math.floor(100 * confidence)  # rounded, it could be what is wanted
    sentence = f"The model was {percent}% sure; the setting minConfidence wants {least:.0%}."
    if wanted > least:
        sentence = (
            f"The model was {percent}% sure; a line that is whole already wants {wanted:.0%}."
        )
    return Silence(Why.UNSURE, sentence)


def of_completion(completion: Completion, limit_ms: int) -> Silence:
    """Why a completion is empty whose request had `limit_ms`."""
    match completion.done:
        case DoneKind.ERROR:
            return Silence(Why.ENGINE_DOWN, completion.reason)
        case DoneKind.CANCELLED:
            return Silence(Why.OVERTAKEN, completion.reason)
        case DoneKind.DEADLINE:
            stage, ms = _slowest(completion.ms)
            what = _STAGES.get(stage, stage)
            spent = min(ms, limit_ms)  # an engine gets a little longer than it is told
            sentence = f"Nothing was ready within {limit_ms} ms; {spent:.0f} ms went into {what}."
            return Silence(Why.TOO_SLOW, sentence, stage)
        case DoneKind.CONVERGED | DoneKind.MAX_STEPS:
            return Silence(Why.NO_SUGGESTION, completion.reason)


def _slowest(ms: dict[str, float]) -> tuple[str, float]:
    """The stage that took the most, what no stage accounts for being the engine's."""
    stages = {stage: took for stage, took in ms.items() if stage != "total"}
    stages["engine"] = ms.get("total", 0.0) - sum(stages.values())
    return max(stages.items(), key=lambda item: item[1])
