"""Chat prompts for instruction-tuned checkpoints (DiffusionGemma-it), with a prefilled answer.

The suffix stands in the user turn; the model turn already holds the code before the cursor,
inside a fence, so that the hole is its continuation.
"""

from __future__ import annotations

from collections.abc import Sequence

from dg_engine.job import Judge, JudgeKind, Rule
from dg_engine.tokenizer import Tokenizer

from dg_lsp.prompts.base import Origin, Prompt, Section
from dg_lsp.prompts.context import CONTEXT_SHARE, diagnostics, fitting
from dg_lsp.prompts.settings import Budget, HoleSettings, InfillSettings
from dg_lsp.prompts.tokens import LineTokens, rounded_up, window_start
from dg_lsp.prompts.view import CursorView

BOS = "<bos>"
TURN = "<|turn>"
TURN_END = "<turn|>"
NEEDED = (TURN, TURN_END)
FENCE = "```"

FILL_SYSTEM = (
    "You fill in code. The user shows what follows the gap; your answer already holds what "
    "stands before it. Go on from there with the code that belongs in the gap, in the style of "
    "the file, and close the fence when the gap is filled."
)
EDIT_SYSTEM = (
    "You edit code. The user shows lines of a file, what follows them and what to change. Your "
    "answer already holds what stands before those lines. Go on with the changed lines, keep "
    "what need not change, and close the fence behind them."
)
_CHARS_PER_TOKEN = 3
"""Fewer than code has on average, so that a text cut by it is rarely short of its budget."""


class Chat:
    """A system turn, a user turn with path and suffix, and a model turn that has begun."""

    name = "chat"
    settings = InfillSettings(
        budget=Budget(prompt=4096, suffix=1024),
        line=HoleSettings(canvas=64, widths=[2, 4, 6, 8, 12, 16, 24, 32], max_steps=8),
        block=HoleSettings(
            canvas=256,
            widths=[],
            max_steps=16,
            rule=Rule.ENTROPY_BOUND,
            causal_candidate=False,
        ),
        edit=HoleSettings(canvas=256, widths=[], max_steps=16, causal_candidate=False),
        least_confidence=0.0,  # nobody measured it
        marks_together=True,
        # The fence that closes an answer is no end token, so the lines keep their length.
        edit_slack=[0],
        next_edit_in_words=True,
        next_edit_wider=True,
    )

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens = LineTokens(tokenizer)
        ids = {token: tokenizer.token_id(token) for token in (BOS, *NEEDED)}
        self._special = {token: found for token, found in ids.items() if found is not None}

    @property
    def encode_ms(self) -> float:
        """Milliseconds spent in the tokenizer so far."""
        return self._tokens.spent_ms

    def encode(self, text: str) -> list[int]:
        """Ids of text for the canvas."""
        return self._tokens.encode(text)

    def build(self, view: CursorView, budget: Budget) -> Prompt:
        """The prompt that asks for the text at a cursor."""
        suffix = self._first(view.after, budget.suffix)
        user = (
            f"{self._context(view, budget)}"
            f"File: {view.path}\nLanguage: {view.language}\n"
            f"What follows the gap:\n{_fenced(self._tokenizer.decode(suffix), view.language)}"
        )
        return self._prompt(view, budget, FILL_SYSTEM, user, suffix)

    def build_edit(self, view: CursorView, old: str, instruction: str, budget: Budget) -> Prompt:
        """The prompt that asks for new text in place of `old`."""
        suffix = self._first(view.after, budget.suffix)
        user = (
            f"File: {view.path}\nLanguage: {view.language}\n"
            f"What to change: {' '.join(instruction.split())}\n"
            f"The lines:\n{_fenced(old, view.language)}\n"
            f"What follows them:\n{_fenced(self._tokenizer.decode(suffix), view.language)}"
        )
        return self._prompt(view, budget, EDIT_SYSTEM, user, suffix)

    def judge(self, settings: InfillSettings, suffix: Sequence[int]) -> Judge:
        """The model turn goes on with the file, so the pinned suffix must follow the hole."""
        return Judge(kind=JudgeKind.CAUSAL, suffix_tokens=settings.judge_pins)

    def answer(self, ids: list[int]) -> str:
        """The text of a filled hole, up to the end of the turn or a closing fence."""
        ends = (i for i, token in enumerate(ids) if token in self._tokenizer.special_ids)
        text = self._tokenizer.decode(ids[: next(ends, len(ids))])
        code, fence, _ = text.partition("\n" + FENCE)
        if fence:
            return code
        return "" if text.startswith(FENCE) else text

    def _prompt(
        self, view: CursorView, budget: Budget, system: str, user: str, suffix: list[int]
    ) -> Prompt:
        opening = f"{FENCE}{view.language}\n"
        head = [
            *self._marker(BOS),
            *self._turn("system", system),
            *self._turn("user", user),
            *self._marker(TURN),
        ]
        model = self._tokens.encode(f"model\n{opening}")
        room = max(budget.prompt - len(head) - len(model), 0)
        before = self._end_of(view.before, room)
        # Fence and code are one text to the tokenizer: merged tokens across them stay as trained.
        ids = [*head, *self._tokens.encode(f"model\n{opening}{before}")]
        return Prompt(
            ids=ids,
            suffix=suffix,
            describe=lambda: [
                Section("system", system, Origin.INSTRUCTION),
                Section("user", user, Origin.CONTEXT),
                Section("model", opening + before, Origin.PREFIX),
            ],
        )

    def _context(self, view: CursorView, budget: Budget) -> str:
        """What is known of other files and what is wrong, in front of all that changes."""
        held = fitting(
            view.context,
            budget.prompt // CONTEXT_SHARE,
            lambda text: len(self._tokens.encode(text)),
        )
        files = [f"{path}\n{_fenced(text, view.language)}\n" for path, text in held]
        wrong = [f"- {text}\n" for text in diagnostics(view.context)]
        return "".join(
            [
                *(["Elsewhere in the project:\n"] if files else []),
                *files,
                *(["What is wrong near the gap:\n"] if wrong else []),
                *wrong,
            ]
        )

    def _turn(self, role: str, text: str) -> list[int]:
        return [
            *self._marker(TURN),
            *self._tokens.encode(f"{role}\n{text}"),
            *self._marker(TURN_END),
            *self._tokens.encode("\n"),
        ]

    def _marker(self, token: str) -> list[int]:
        return [self._special[token]] if token in self._special else []

    def _first(self, text: str, limit: int) -> list[int]:
        return self._tokens.encode(text[: limit * 2 * _CHARS_PER_TOKEN])[:limit]

    def _end_of(self, before: str, room: int) -> str:
        """The end of `before` that fits, cut at a line start that moves in jumps."""
        above, line = self._tokens.above(before)
        last = self._tokens.piece(line)
        start = window_start(above, len(last), room)
        if start > len(above):  # the cursor's own line is longer than the room
            ids = self._tokens.encode(line)
            return self._tokenizer.decode(ids[rounded_up(len(ids) - room) :])
        return "".join([*above.texts[start:], line]).removeprefix("\n" if start else "")


def _fenced(text: str, language: str) -> str:
    """`text` in a fence longer than any inside it."""
    fence = FENCE
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"
