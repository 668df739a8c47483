"""Prompts are exact token streams that stay the same where the text stays the same."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from dg_engine.engine import EngineError
from dg_engine.job import JudgeKind, Role, StopKind, check_job
from dg_engine.tokenizer import Tokenizer
from dg_lsp.jobs import edit_job, hole_job
from dg_lsp.prompts import Budget, PromptFormat, prompt_format_for
from dg_lsp.prompts.chat import EDIT_SYSTEM, FILL_SYSTEM
from dg_lsp.prompts.settings import InfillSettings
from dg_lsp.prompts.tokens import START_STEP, LineTokens, pieces_of
from dg_lsp.prompts.view import ANCHOR_LINES
from dg_lsp.scope import opens_block
from hypothesis import given
from hypothesis import strategies as st

from tests.cursors import at_cursor
from tests.prompt_fixtures import fim, shown, tiny
from tests.tiny_tokenizers import CHAT_TOKENS, FIM_TOKENS, write_tokenizer

__all__ = ["fim", "tiny"]

BUDGET = Budget(prompt=448, suffix=128)
SOURCE = "import os\n\n\ndef add(a, b):\n    return a + b\n\n\nprint(add(1, 2))\n"


@pytest.fixture(scope="module")
def chatty(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(write_tokenizer(tmp_path_factory.mktemp("chat"), CHAT_TOKENS, split=None))


@pytest.fixture
def chat(chatty: Tokenizer) -> PromptFormat:
    return prompt_format_for(chatty, Path("chat"))


@pytest.mark.parametrize(
    ("marked", "stream"),
    [
        ("a = ‸\nb\n", "<fim_suffix>\nb\n<file_end><fim_prefix>a = <fim_middle>"),
        ("a = ‸", "<fim_suffix><file_end><fim_prefix>a = <fim_middle>"),
        ("‸", "<fim_suffix><file_end><fim_prefix><fim_middle>"),
        ("f(‸)\r\nb", "<fim_suffix>)\nb<file_end><fim_prefix>f(<fim_middle>"),
        ("x\n    ‸\ny", "<fim_suffix>\ny<file_end><fim_prefix>x\n    <fim_middle>"),
        ("<eos>‸", "<fim_suffix><file_end><fim_prefix><eos><fim_middle>"),
    ],
)
def test_the_middle_is_asked_for_behind_suffix_and_prefix(
    fim: PromptFormat, tiny: Tokenizer, marked: str, stream: str
) -> None:
    assert shown(tiny, fim.build(at_cursor(marked), BUDGET).ids) == stream


def test_special_tokens_in_the_source_are_plain_text(fim: PromptFormat, tiny: Tokenizer) -> None:
    ids = fim.build(at_cursor("<eos>‸<fim_middle>"), BUDGET).ids
    assert ids.count(tiny.token_id("<eos>")) == 0  # type: ignore[arg-type]
    assert ids.count(tiny.token_id("<fim_middle>")) == 1  # type: ignore[arg-type]


def test_without_a_file_end_token_nothing_marks_the_end(tmp_path: Path) -> None:
    tokenizer = Tokenizer(write_tokenizer(tmp_path, FIM_TOKENS))
    ids = prompt_format_for(tokenizer, tmp_path).build(at_cursor("a‸"), BUDGET).ids
    assert shown(tokenizer, ids) == "<fim_suffix><fim_prefix>a<fim_middle>"


def test_the_token_stream_of_a_function_body(fim: PromptFormat, tiny: Tokenizer) -> None:
    marked = SOURCE.replace("return a + b", "return ‸")
    suffix, prefix = "\n\n\nprint(add(1, 2))\n", "import os\n\n\ndef add(a, b):\n    return "
    ids = fim.build(at_cursor(marked), BUDGET).ids
    mark = {name: tiny.token_id(name) for name in (*FIM_TOKENS, "<file_end>")}
    assert ids == [
        mark["<fim_suffix>"],
        *tiny.encode(suffix),
        mark["<file_end>"],
        mark["<fim_prefix>"],
        *tiny.encode(prefix),
        mark["<fim_middle>"],
    ]


@given(st.text(st.sampled_from("ab_ \n\t(1.é😀}"), max_size=40))
def test_pieces_encode_to_the_ids_of_the_whole_text(text: str) -> None:
    tokenizer = _shared_tokenizer()
    tokens = LineTokens(tokenizer)
    assert tokens.exact
    assert "".join(pieces_of(text)) == text
    assert tokens.encode(text) == tokenizer.encode(text)


def test_a_tokenizer_that_merges_across_lines_is_not_split(chatty: Tokenizer) -> None:
    tokens = LineTokens(chatty)
    assert not tokens.exact
    assert tokens.encode(SOURCE) == chatty.encode(SOURCE)


def test_a_keystroke_encodes_one_line(fim: PromptFormat, tiny: Tokenizer) -> None:
    encoded: list[str] = []
    encode = tiny.encode
    tiny.encode = lambda text: encoded.append(text) or encode(text)  # type: ignore[method-assign]
    try:
        fim.build(at_cursor(SOURCE.replace("a + b", "a ‸")), BUDGET)
        encoded.clear()
        fim.build(at_cursor(SOURCE.replace("a + b", "a +‸")), BUDGET)
    finally:
        del tiny.encode
    assert encoded == ["\n    return a +"]


def long_source(lines: int) -> str:
    return "".join(f"value_{i} = compute({i}, 'x')\n" for i in range(lines))


@pytest.mark.parametrize("lines", [0, 1, 5, 40, 63, 64, 65, 200, 1000])
@pytest.mark.parametrize("after", ["‸", "‸)\n", "‸\n" + "y = 2\n" * 200])
def test_a_prompt_keeps_its_budget_and_uses_most_of_it(
    fim: PromptFormat, tiny: Tokenizer, lines: int, after: str
) -> None:
    view = at_cursor(long_source(lines) + after)
    ids = fim.build(view, BUDGET).ids
    suffix = ids[1 : ids.index(tiny.token_id("<fim_prefix>"))]  # type: ignore[arg-type]
    assert len(suffix) <= BUDGET.suffix
    assert len(ids) <= BUDGET.prompt
    a_line = 20
    if len(tiny.encode(view.before)) > BUDGET.prompt:
        room = BUDGET.prompt - len(suffix) - 3
        assert len(ids) - len(suffix) - 3 >= room - START_STEP - a_line


def test_a_cut_prefix_starts_at_a_line(fim: PromptFormat, tiny: Tokenizer) -> None:
    prefix = shown(tiny, fim.build(at_cursor(long_source(300) + "‸"), BUDGET).ids)
    prefix = prefix.partition("<fim_prefix>")[2]
    assert prefix.startswith("\nvalue_")


def test_typing_moves_the_start_of_the_prompt_in_jumps(fim: PromptFormat, tiny: Tokenizer) -> None:
    """So that the engine finds the whole prompt but the new tokens in its cache."""
    text = long_source(500)
    starts: list[tuple[int, ...]] = []
    lengths: list[int] = []
    for end in range(len(text) - 2000, len(text), 7):
        ids = fim.build(at_cursor(text[:end] + "‸\n" + "y = 2\n" * 200), BUDGET).ids
        starts.append(tuple(ids[:150]))
        lengths.append(len(ids))
    jumps = sum(a != b for a, b in itertools.pairwise(starts))
    typed = len(tiny.encode(text[-2000:]))
    assert 1 <= jumps <= typed / START_STEP + 2
    shrunk = sum(b < a - START_STEP / 2 for a, b in itertools.pairwise(lengths))
    assert shrunk == jumps


def test_typing_past_an_anchor_line_does_not_make_the_start_jump_back(
    fim: PromptFormat, tiny: Tokenizer
) -> None:
    prefix = tiny.token_id("<fim_prefix>")
    firsts: list[int] = []
    for lines in range(ANCHOR_LINES, ANCHOR_LINES * 6):
        ids = fim.build(at_cursor(long_source(lines) + "‸"), BUDGET).ids
        text = tiny.decode(ids[ids.index(prefix) :])  # type: ignore[arg-type]
        firsts.append(int(text.lstrip().removeprefix("value_").split(" ")[0]))
    assert firsts == sorted(firsts)


def test_a_line_longer_than_the_budget_is_cut_inside(fim: PromptFormat, tiny: Tokenizer) -> None:
    ids = fim.build(at_cursor("x = [" + "12, " * 5000 + "‸"), BUDGET).ids
    assert BUDGET.prompt - START_STEP <= len(ids) <= BUDGET.prompt
    assert shown(tiny, ids).endswith("12, 12, <fim_middle>")


def test_one_line_is_raced_in_widths_against_a_pinned_suffix(
    fim: PromptFormat, tiny: Tokenizer
) -> None:
    prompt = fim.build(at_cursor("a = ‸\n" + "y = 2\n" * 50), BUDGET)
    job = hole_job("j", prompt, fim, fim.settings, multi_line=False)
    check_job(job, canvas_length=256, vocab_size=tiny.vocab_size)
    assert job.roles == bytes([Role.HOLE] + [Role.PIN] * 31)
    assert job.canvas[1:] == prompt.suffix[:31]
    assert job.widths == [2, 4, 8, 16]
    assert (job.single_line, job.causal_candidate, job.max_steps) == (True, True, 2)
    assert job.causal_sure == -0.3
    assert job.stop.kind is StopKind.FIRST_LINE
    assert (job.judge.kind, job.judge.tail) == (JudgeKind.CAUSAL, prompt.suffix[:8])


def test_where_nothing_follows_the_judge_reads_the_end_token(
    fim: PromptFormat, tiny: Tokenizer
) -> None:
    prompt = fim.build(at_cursor("a = ‸"), BUDGET)
    assert prompt.suffix == []
    job = hole_job("j", prompt, fim, fim.settings, multi_line=False)
    assert job.judge.tail == [tiny.token_id("<eos>")]


@pytest.mark.parametrize("pins", [0, 1, 15, 16, 20, 31, 40])
def test_near_the_end_of_the_file_the_widest_hole_still_fits(
    fim: PromptFormat, tiny: Tokenizer, pins: int
) -> None:
    prompt = fim.build(at_cursor("a = ‸" + "1" * pins), BUDGET)
    assert len(prompt.suffix) == pins
    job = hole_job("j", prompt, fim, fim.settings, multi_line=False)
    check_job(job, canvas_length=256, vocab_size=tiny.vocab_size)
    assert max(job.widths) == 16
    assert len(job.canvas) == min(32, 16 + pins)


def test_a_block_may_have_several_lines_and_ends_at_the_end_token(
    fim: PromptFormat, tiny: Tokenizer
) -> None:
    prompt = fim.build(at_cursor("def f():\n    ‸\n" + "y = 2\n" * 50), BUDGET)
    job = hole_job("j", prompt, fim, fim.settings, multi_line=True)
    check_job(job, canvas_length=256, vocab_size=tiny.vocab_size)
    assert (len(job.canvas), job.single_line) == (64, False)
    assert job.stop.kind is StopKind.FIRST_EOS


@pytest.mark.parametrize(
    ("marked", "opens"),
    [
        ("def f():\n    ‸\n", True),
        ("def f():\n‸", True),
        ("if (a) {\n    ‸\n}\n", True),
        ("def f():\n    ‸\n    return 1\n", False),
        ("def f():\n    x‸\n", False),
        ("def f():‸\n", False),
        ("x = 1\n‸\n", False),
        ("for x in y:\n\n    ‸\nz", True),
        ("‸", False),
    ],
)
def test_a_blank_line_in_a_block_without_a_body_asks_for_a_block(marked: str, opens: bool) -> None:
    assert opens_block(at_cursor(marked)) is opens


def test_an_edit_seeds_the_old_tokens_and_pins_what_follows(
    fim: PromptFormat, tiny: Tokenizer
) -> None:
    view = at_cursor("x = 1‸\nz = 3\n")
    prompt = fim.build_edit(view, "    y = 2", "make it\n three", BUDGET)
    assert shown(tiny, prompt.ids) == (
        "<fim_suffix>\nz = 3\n<file_end><fim_prefix>x = 1\n    # make it three<fim_middle>"
    )
    old = fim.encode("\n    y = 2")
    job = edit_job("j", prompt, old, 1, fim, fim.settings)
    check_job(job, canvas_length=256, vocab_size=tiny.vocab_size)
    assert job.canvas == [*old, *tiny.encode("\nz = 3\n")]
    seeds, pins = len(old) - 1, len(prompt.suffix)
    assert job.roles == bytes([Role.PIN] + [Role.SEED] * seeds + [Role.PIN] * pins)
    assert job.keep_seed_steps == 1


def test_a_chat_prompt_is_two_turns_and_an_answer_that_has_begun(
    chat: PromptFormat, chatty: Tokenizer
) -> None:
    prompt = chat.build(
        at_cursor("def f():\n    return ‸\n\nf()\n", path="pkg/a.py"), chat.settings.budget
    )
    mark = {name: [chatty.token_id(name)] for name in CHAT_TOKENS}
    user = "user\nFile: pkg/a.py\nLanguage: python\nWhat follows the gap:\n```python\n\n\nf()\n```"
    turns = [
        *mark["<bos>"],
        *mark["<|turn>"],
        *chatty.encode(f"system\n{FILL_SYSTEM}"),
        *mark["<turn|>"],
        *chatty.encode("\n"),
        *mark["<|turn>"],
        *chatty.encode(user),
        *mark["<turn|>"],
        *chatty.encode("\n"),
        *mark["<|turn>"],
        *chatty.encode("model\n```python\ndef f():\n    return "),
    ]
    assert prompt.ids == turns


def test_a_chat_edit_shows_the_lines_and_the_instruction(
    chat: PromptFormat, chatty: Tokenizer
) -> None:
    view = at_cursor("a = 1‸\nc = 3\n")
    prompt = chat.build_edit(view, "b = 2", "use four", chat.settings.budget)
    text = shown(chatty, prompt.ids)
    assert EDIT_SYSTEM in text
    assert "What to change: use four\nThe lines:\n```python\nb = 2\n```" in text
    assert text.endswith("<|turn>model\n```python\na = 1")


def test_a_fence_in_the_source_does_not_end_the_fence_around_it(
    chat: PromptFormat, chatty: Tokenizer
) -> None:
    prompt = chat.build(at_cursor('‸\n"""\n```\n"""\n'), chat.settings.budget)
    assert "\n````python\n" in shown(chatty, prompt.ids)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("a + b\n```\nThat is all.", "a + b"),
        ("```\n", ""),
        ("a", "a"),
        ("x = '```'", "x = '```'"),
    ],
)
def test_a_closing_fence_ends_a_chat_answer(
    chat: PromptFormat, chatty: Tokenizer, answer: str, text: str
) -> None:
    assert chat.answer(chatty.encode(answer)) == text


@pytest.mark.parametrize("ender", ["<turn|>", "<eos>"])
def test_the_end_of_the_turn_ends_a_chat_answer(
    chat: PromptFormat, chatty: Tokenizer, ender: str
) -> None:
    end = chatty.token_id(ender)
    assert end is not None
    assert chat.answer([*chatty.encode("a"), end, *chatty.encode("b")]) == "a"


def test_a_chat_prompt_keeps_its_budget(chat: PromptFormat) -> None:
    budget = Budget(prompt=900, suffix=100)
    ids = chat.build(at_cursor(long_source(500) + "‸\n" + "y\n" * 900), budget).ids
    assert 600 < len(ids) <= 900


def test_a_chat_block_fills_the_whole_canvas_without_pins(
    chat: PromptFormat, chatty: Tokenizer
) -> None:
    settings: InfillSettings = chat.settings
    prompt = chat.build(at_cursor("def f():\n    ‸\n\nf()\n"), settings.budget)
    job = hole_job("j", prompt, chat, settings, multi_line=True)
    check_job(job, canvas_length=256, vocab_size=chatty.vocab_size)
    assert job.roles == bytes([Role.HOLE] * 256)
    assert job.judge.tail is None


def test_a_tokenizer_without_a_known_format_is_refused_in_one_sentence(tmp_path: Path) -> None:
    tokenizer = Tokenizer(write_tokenizer(tmp_path, ["<eos>"]))
    with pytest.raises(EngineError, match=r"^The tokenizer in .* has neither .*; choose .*\.$"):
        prompt_format_for(tokenizer, tmp_path)


_TOKENIZER: list[Tokenizer] = []


def _shared_tokenizer() -> Tokenizer:
    if not _TOKENIZER:
        import tempfile

        folder = write_tokenizer(Path(tempfile.mkdtemp()), FIM_TOKENS)
        _TOKENIZER.append(Tokenizer(folder))
    return _TOKENIZER[0]
