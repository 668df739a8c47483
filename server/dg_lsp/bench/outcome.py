"""How one hole was filled by one method."""

from __future__ import annotations

import difflib

import msgspec

from dg_lsp.bench.holes import Hole
from dg_lsp.bench.score import parses_between, repeats_suffix


class Warm(msgspec.Struct, frozen=True):
    """A warm start beside a cold one at the same place, after typed characters."""

    agrees: bool
    """Whether the earlier answer begins with what was typed; if not, the job starts cold."""
    cold_forwards: int
    cold_ms: float
    cold_exact: bool
    same_as_before: bool
    """Whether the answer is the rest of the earlier one."""
    same_as_cold: bool


class Filled(msgspec.Struct, frozen=True):
    """The texts that a method puts into a hole, and what they cost."""

    texts: list[str]
    """One for each hole of the question."""
    steps: int
    forwards: int
    ms: float
    confidence: float = 0.0
    """Mean log-probability per judged token."""
    tokens: int = 0
    """Tokens of the texts."""
    typed: int = 0
    """Characters of the true text that were typed before the question was asked."""
    warm: Warm | None = None


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hole filled by one method, and compared with what stood there."""

    id: str
    kind: str
    text: str
    exact: bool
    similarity: float
    repeats_suffix: bool
    confidence: float
    tokens: int
    steps: int
    forwards: int
    ms: float
    """Milliseconds of the jobs, their way to the engine process and back included."""
    parses: bool | None = None
    """Whether the program around it parses; None where it does not with the true text either."""
    second: str = ""
    right: float = 0.0
    """Share of the question's holes that are exact."""
    warm: Warm | None = None
    passed: bool | None = None
    """Whether the program passed its tests, where it has any."""

    @property
    def is_shown(self) -> bool:
        """Whether there was anything to show."""
        return bool(self.text or self.second)

    @property
    def total(self) -> float:
        """Log-probability of the whole text and of its end."""
        return self.confidence * (self.tokens + 1)


def outcome_of(hole: Hole, filled: Filled) -> Outcome:
    """Compare the texts with what stood in the hole."""
    truths = [hole.middle[filled.typed :], hole.second][: len(filled.texts)]
    behind = [hole.following, hole.suffix]
    exact = [
        is_exact(text, truth, ends_line=_ends_line(after))
        for text, truth, after in zip(filled.texts, truths, behind, strict=False)
    ]
    similar = [
        difflib.SequenceMatcher(None, text, truth, autojunk=False).ratio()
        for text, truth in zip(filled.texts, truths, strict=True)
    ]
    first, second = [*filled.texts, ""][:2]
    before = hole.prefix + hole.middle[: filled.typed]
    return Outcome(
        id=hole.id,
        kind=hole.kind,
        text=first,
        exact=all(exact),
        similarity=sum(similar) / len(similar),
        repeats_suffix=any(
            repeats_suffix(text, after)
            for text, after in zip(filled.texts, behind, strict=False)
            if text
        ),
        confidence=filled.confidence,
        tokens=filled.tokens,
        steps=filled.steps,
        forwards=filled.forwards,
        ms=filled.ms,
        parses=parses_between(
            before,
            truths[0] + hole.between + hole.second,
            first + hole.between + second,
            hole.suffix,
        ),
        second=second,
        right=sum(exact) / len(exact),
        warm=filled.warm,
    )


def is_exact(text: str, truth: str, *, ends_line: bool) -> bool:
    """Whether a text is the true one; white space at the end of a line does not count."""
    return text.rstrip() == truth.rstrip() if ends_line else text == truth


def _ends_line(after: str) -> bool:
    return not after.partition("\n")[0].strip()
