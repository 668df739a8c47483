"""Fill-in-the-middle prompts, as dg-tiny reads them: suffix, prefix, then the middle."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec
from dg_engine.job import Judge, JudgeKind
from dg_engine.tokenizer import Tokenizer

from dg_lsp.languages import comment_mark
from dg_lsp.prompts.base import Origin, Prompt, Section
from dg_lsp.prompts.context import CONTEXT_SHARE, fitting
from dg_lsp.prompts.settings import Budget, InfillSettings
from dg_lsp.prompts.tokens import START_STEP, LineTokens, rounded_up, window_start
from dg_lsp.prompts.view import CursorView, Snippet

PREFIX = "<fim_prefix>"
SUFFIX = "<fim_suffix>"
MIDDLE = "<fim_middle>"
EOS = "<eos>"
FILE_END = "<file_end>"
NEEDED = (PREFIX, SUFFIX, MIDDLE, EOS)
_REMEMBERED = 16


class FillInTheMiddle:
    """`<fim_suffix>` S `<fim_prefix>` P `<fim_middle>`; the middle ends with `<eos>`.

    The suffix comes first because it stays the same while one types, then what other files have to
    say, each behind the other as files are in training, with `<file_end>` behind each.
    """

    name = "fill-in-the-middle"
    settings = InfillSettings()

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens = LineTokens(tokenizer)
        self._fitting = lru_cache(_REMEMBERED)(self._fitting_now)
        self._below = lru_cache(_REMEMBERED)(self._below_now)
        self._prefix, self._suffix, self._middle, self._eos = (
            _known(tokenizer, token) for token in NEEDED
        )
        file_end = tokenizer.token_id(FILE_END)
        self._marks_files = file_end is not None
        self._end = -1 if file_end is None else file_end

    @property
    def encode_ms(self) -> float:
        """Milliseconds spent in the tokenizer so far."""
        return self._tokens.spent_ms

    def encode(self, text: str) -> list[int]:
        """Ids of text for the canvas."""
        return self._tokens.encode(text)

    def build(self, view: CursorView, budget: Budget) -> Prompt:
        """The prompt that asks for the text at a cursor; at most `budget.prompt` tokens."""
        suffix, ended = self._suffix_ids(view, budget.suffix)
        room = budget.prompt - len(suffix) - 3 - ended
        context = self._context(view, room)
        front = [i for _, ids in context for i in (*ids, self._end)]
        prefix = self._prefix_ids(view.before, room - len(front))
        end = [self._end] if ended else []

        def describe() -> list[Section]:
            decode = self._tokenizer.decode
            return [
                Section(SUFFIX, decode(suffix), Origin.SUFFIX),
                *([Section(FILE_END, "")] if end else []),
                Section(PREFIX, "" if context else decode(prefix), Origin.PREFIX),
                *(Section(path, decode(ids), Origin.CONTEXT) for path, ids in context),
                *([Section(FILE_END, decode(prefix), Origin.PREFIX)] if context else []),
                Section(MIDDLE, ""),
            ]

        ids = [self._suffix, *suffix, *end, self._prefix, *front, *prefix, self._middle]
        return Prompt(ids=ids, suffix=suffix, describe=describe)

    def build_edit(self, view: CursorView, old: str, instruction: str, budget: Budget) -> Prompt:
        """As `build`, with the instruction as a comment on the last line before the hole."""
        wish = " ".join(instruction.split())
        if not wish:
            return self.build(view, budget)
        first = next((line for line in old.split("\n") if line.strip()), "")
        indent = first[: len(first) - len(first.lstrip())]
        lead = "\n" if view.before or not view.at_start else ""
        comment = f"{lead}{indent}{comment_mark(view.language)} {wish}"
        return self.build(_with_before(view, view.before + comment), budget)

    def judge(self, settings: InfillSettings, suffix: Sequence[int]) -> Judge:
        """By the suffix, as far as it goes: it tells right lengths from wrong ones better than the
        end token does, though the causal mode was trained to end there (quality.md)."""
        tail = list(suffix[: settings.judge_pins])
        return Judge(kind=JudgeKind.CAUSAL, tail=tail or [self._eos], end=self._eos)

    def answer(self, ids: list[int]) -> str:
        """The text of a filled hole, up to its end token."""
        end = ids.index(self._eos) if self._eos in ids else len(ids)
        return self._tokenizer.decode(ids[:end])

    def _suffix_ids(self, view: CursorView, limit: int) -> tuple[list[int], bool]:
        """Ids of the text after the cursor, and whether the end of the file is marked."""
        end = view.after.find("\n") if self._tokens.exact else -1
        line, below = (view.after, "") if end < 0 else (view.after[:end], view.after[end:])
        ids = [*self._tokens.piece(line), *(self._below(below, limit) if below else ())]
        if len(ids) >= limit:
            return ids[:limit], False
        return ids, view.at_end and self._marks_files

    def _below_now(self, text: str, limit: int) -> list[int]:
        """Ids of the first lines below the cursor's, `limit` or more if there are as many."""
        ids: list[int] = []
        for line in text[1:].split("\n"):
            ids.extend(self._tokens.piece("\n" + line))
            if len(ids) >= limit:
                break
        return ids

    def _context(self, view: CursorView, room: int) -> list[tuple[str, list[int]]]:
        """Paths and ids of what stands in front of the prefix, which shares `room` with it.

        The prefix leaves a share of the room, more when the file is short.
        """
        if not view.context or not self._marks_files:
            return []
        above, last = self._tokens.above(view.before)
        needed = len(self._tokens.piece(last)) + above.up_to(room)
        # In jumps, so that what fits does not change with every letter.
        spare = max(room - needed, 0) // START_STEP * START_STEP
        left = max(spare, room // CONTEXT_SHARE)
        return self._fitting(view.context, left)

    def _fitting_now(self, context: tuple[Snippet, ...], room: int) -> list[tuple[str, list[int]]]:
        held = fitting(context, room, lambda text: len(self._tokens.encode(text)))
        return [(path, self._tokens.encode(text)) for path, text in held]

    def _prefix_ids(self, before: str, room: int) -> list[int]:
        """Ids of the end of `before`, cut at a line start that moves in jumps."""
        if not self._tokens.exact:
            ids = self._tokens.encode(before)
            return ids[rounded_up(len(ids) - room) :]
        above, line = self._tokens.above(before)
        last = self._tokens.piece(line)
        start = window_start(above, len(last), room)
        if start > len(above):  # the cursor's own line is longer than the room
            return [*last[rounded_up(len(last) - room) :]]
        return [*above.ids_from(start), *last]


def _with_before(view: CursorView, before: str) -> CursorView:
    return msgspec.structs.replace(view, before=before)


def _known(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_id(token)
    assert found is not None, f"{token} was checked by prompt_format_for"
    return found
