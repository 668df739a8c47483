"""Every number that shapes an infill job, in one place, so that a measurement changes one line."""

from __future__ import annotations

import msgspec
from dg_engine.job import Rule


class Budget(msgspec.Struct, frozen=True):
    """Tokens that a prompt may hold: in all, and of the text after the cursor."""

    prompt: int
    suffix: int


class HoleSettings(msgspec.Struct, frozen=True):
    """One kind of hole: how long it may be and how it is denoised."""

    canvas: int
    """Positions in all; what the hole does not take is pinned to the text after the cursor."""
    widths: list[int]
    """Hole lengths that are raced; empty runs one hole that fills the canvas, without pins."""
    max_steps: int
    """Denoise steps at most."""
    rule: Rule = Rule.TOP_K
    causal_candidate: bool = True
    """Whether the causal mode's greedy continuation is one candidate more."""
    causal_sure: float | None = None
    """Mean log-probability from which that continuation is the answer and nothing is raced."""

    def within(self, canvas_length: int) -> HoleSettings:
        """These settings on a canvas of at most `canvas_length` positions."""
        canvas = min(self.canvas, canvas_length)
        widths = [width for width in self.widths if width <= canvas]
        return msgspec.structs.replace(
            self, canvas=canvas, widths=widths or ([canvas] if self.widths else [])
        )


class InfillSettings(msgspec.Struct, frozen=True):
    """How cursors and selections become canvas jobs.

    The defaults are dg-tiny's; a prompt format brings its own.
    """

    budget: Budget = Budget(prompt=944, suffix=208)
    line: HoleSettings = HoleSettings(
        canvas=32, widths=[2, 4, 8, 16], max_steps=2, causal_sure=-0.3
    )
    """The rest of the line at the cursor."""
    block: HoleSettings = HoleSettings(
        canvas=64, widths=[8, 16, 32, 48], max_steps=4, causal_sure=-0.3
    )
    """Several lines, where a block has just been opened or when asked for."""
    edit: HoleSettings = HoleSettings(canvas=256, widths=[], max_steps=8, causal_candidate=False)
    """Selected lines; `canvas` bounds how many tokens can be edited at once."""
    edit_keep_steps: int = 1
    """Steps for which the old tokens of an edit are kept, so that the canvas leans on them."""
    edit_pins: int = 32
    """Tokens after the selection that are pinned behind it."""
    edit_slack: list[int] = msgspec.field(default_factory=lambda: [0])
    """Open positions behind the old tokens of an edit, raced; with 0 their number cannot change."""
    edit_tokens: int = 4096
    """Tokens that one edit may change at most; more than a canvas is solved window by window."""
    marks_together: bool = False
    """Whether marks near each other share a canvas; dg-tiny does better one after the other."""
    mark_widths: list[int] = msgspec.field(default_factory=lambda: [2, 4, 8])
    """Lengths that all marks of one canvas get in turn; a last try gives each mark its best."""
    next_edit_in_words: bool = False
    """Whether a model that is asked about a next edit is told in words what the user did."""
    next_edit_wider: bool = False
    """Whether its consent counts where little is alike; dg-tiny's does not (next_edit.md)."""
    judge_pins: int = 8
    """Tokens of the suffix that the causal judge reads behind each candidate."""
    least_confidence: float = 0.35
    """Confidence below which a suggestion that comes by itself is held back (quality.md)."""
    seed: int | None = 0
    """Noise seed: the same text gives the same answer. None draws anew each time."""

    def always_denoised(self) -> InfillSettings:
        """These settings without the short way of a sure causal line: there is a canvas to see."""
        return msgspec.structs.replace(
            self,
            line=msgspec.structs.replace(self.line, causal_sure=None),
            block=msgspec.structs.replace(self.block, causal_sure=None),
        )

    def within(self, canvas_length: int) -> InfillSettings:
        """These settings on a model whose canvas has at most `canvas_length` positions."""
        return msgspec.structs.replace(
            self,
            line=self.line.within(canvas_length),
            block=self.block.within(canvas_length),
            edit=self.edit.within(canvas_length),
        )
