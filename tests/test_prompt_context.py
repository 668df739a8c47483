"""Context stands in a prompt where training had other files, and stays there while one types."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest
from dg_engine.tokenizer import Tokenizer
from dg_lsp.prompts import Budget, PromptFormat, prompt_format_for
from dg_lsp.prompts.base import Origin
from dg_lsp.prompts.context import CONTEXT_SHARE, fitting
from dg_lsp.prompts.view import Snippet, SnippetKind

from tests.cursors import at_cursor
from tests.prompt_fixtures import fim, shown, tiny
from tests.tiny_tokenizers import CHAT_TOKENS, write_tokenizer

__all__ = ["fim", "tiny"]

BUDGET = Budget(prompt=448, suffix=128)
DEFINITION = Snippet("b.py", "def helper(a): ...", SnippetKind.DEFINITION)
TWO = (DEFINITION, Snippet("a.py", "class A:\n    x: int", SnippetKind.CLASS))


def test_files_stand_before_the_prefix_each_with_its_end(
    fim: PromptFormat, tiny: Tokenizer
) -> None:
    prompt = fim.build(at_cursor("x = ‸\ny\n", path="c.py", context=TWO), BUDGET)
    assert shown(tiny, prompt.ids) == (
        "<fim_suffix>\ny\n<file_end><fim_prefix>"
        "class A:\n    x: int\n<file_end>def helper(a): ...\n<file_end>x = <fim_middle>"
    )
    assert [(s.name, s.origin) for s in prompt.sections if s.text] == [
        ("<fim_suffix>", Origin.SUFFIX),
        ("a.py", Origin.CONTEXT),
        ("b.py", Origin.CONTEXT),
        ("<file_end>", Origin.PREFIX),
    ]


def test_a_change_of_rank_alone_changes_no_prompt(fim: PromptFormat) -> None:
    one, other = (
        fim.build(at_cursor("x = ‸\n", path="c.py", context=c), BUDGET).ids
        for c in (TWO, TWO[::-1])
    )
    assert one == other


def test_without_context_a_prompt_is_what_it_was(fim: PromptFormat) -> None:
    view = at_cursor(
        "x = ‸\n", path="c.py", context=(Snippet("a", "is undefined", SnippetKind.DIAGNOSTIC),)
    )
    bare = msgspec.structs.replace(view, context=())
    assert fim.build(view, BUDGET).ids == fim.build(bare, BUDGET).ids


@pytest.mark.parametrize("lines", [0, 3, 10, 30, 300])
def test_a_prompt_with_context_keeps_its_budget(
    fim: PromptFormat, tiny: Tokenizer, lines: int
) -> None:
    before = "".join(f"value_{i} = compute({i})\n" for i in range(lines))
    many = tuple(
        Snippet(f"{n}.py", f"def helper_{n}(a, b): ...", SnippetKind.DEFINITION) for n in range(40)
    )
    ids = fim.build(at_cursor(f"{before}‸\ny\n", path="c.py", context=many), BUDGET).ids
    assert len(ids) <= BUDGET.prompt
    text = shown(tiny, ids)
    share = BUDGET.prompt // CONTEXT_SHARE
    context = text.partition("<fim_prefix>")[2].rpartition("<file_end>")[0]
    taken = len(tiny.encode(context.replace("<file_end>", ""))) + context.count("<file_end>") + 1
    if lines == 300:  # the prefix leaves nothing but the share
        assert share // 2 < taken <= share
    if lines == 0:  # all that is left
        assert taken > BUDGET.prompt // 2
    if lines <= 3:
        assert f"<file_end>{before}<fim_middle>" in text


def test_typing_leaves_what_stands_before_the_prefix(fim: PromptFormat, tiny: Tokenizer) -> None:
    many = tuple(
        Snippet(f"{n}.py", f"def helper_{n}(a, b): ...", SnippetKind.DEFINITION) for n in range(40)
    )
    fronts: list[str] = []
    typed = "value = compute(1)\n" * 12
    for end in range(len(typed)):
        ids = fim.build(at_cursor(f"{typed[:end]}‸\ny\n", path="c.py", context=many), BUDGET).ids
        fronts.append(shown(tiny, ids).rpartition("<file_end>")[0])
    changes = sum(a != b for a, b in itertools.pairwise(fronts))
    assert 1 <= changes <= len(tiny.encode(typed)) / 64 + 1


def test_a_snippet_too_long_is_cut_at_a_line_or_left_out() -> None:
    long = Snippet("a.py", "\n".join("abcd" for _ in range(10)), SnippetKind.CLASS)
    ((_, text),) = fitting([long], 24, len)
    assert text == "abcd\nabcd\nabcd\nabcd\n"
    assert fitting([long], 14, len) == []
    ((_, text),) = fitting([long, DEFINITION], 40, len)
    assert text.startswith("abcd\n")


def test_a_chat_prompt_shows_other_files_and_what_is_wrong_first(
    tmp_path: Path,
) -> None:
    tokenizer = Tokenizer(write_tokenizer(tmp_path, CHAT_TOKENS, split=None))
    chat = prompt_format_for(tokenizer, tmp_path)
    wrong = Snippet("c.py", "helper is undefined", SnippetKind.DIAGNOSTIC)
    prompt = chat.build(
        at_cursor("x = ‸\n", path="c.py", context=(DEFINITION, wrong)), chat.settings.budget
    )
    assert (
        "user\nElsewhere in the project:\nb.py\n```python\ndef helper(a): ...\n```\n"
        "What is wrong near the gap:\n- helper is undefined\nFile: c.py\n"
    ) in shown(tokenizer, prompt.ids)
