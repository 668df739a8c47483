"""Marks: `___` is code that is missing, and one canvas fills all that it holds."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from dg_engine.job import DoneKind, Role
from dg_engine.tokenizer import Tokenizer
from dg_lsp.completion import Fill, FillRequest
from dg_lsp.lines import Lines
from dg_lsp.marks import Mark, between, filled, grouped, marks_in, shifted
from hypothesis import given
from hypothesis import strategies as st

from tests.completer_fixtures import Scripted, tokenizer

__all__ = ["tokenizer"]


class Marked(Scripted):
    """Fills marks, together if a test does not say otherwise."""

    def __init__(self, tokenizer: Tokenizer, answers: Iterable[str], **settings: object) -> None:
        super().__init__(tokenizer, answers, **{"marks_together": True, **settings})

    async def fill(self, text: str) -> Fill:
        lines = Lines.of(text)
        return await self.completer.fill_marks(
            FillRequest(lines, marks_in(lines), "a.py", "python")
        )


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("x = ___", [4]),
        ("f(___, ___)", [2, 7]),
        ("___", [0]),
        ("a.___()", [2]),
        ("____ + __ + _", []),
        ("x___ + ___y + _1___", []),
        ("___init___", []),
        ("é___", []),
        ("'___'", [1]),
    ],
)
def test_a_mark_is_three_underscores_on_their_own(line: str, columns: list[int]) -> None:
    assert [mark.start for mark in marks_in(Lines.of(line))] == columns


def test_marks_are_found_in_a_range_of_lines() -> None:
    lines = Lines.of("___\n___\n___\n")
    assert marks_in(lines, 1, 1) == [Mark(1, 0)]
    assert [mark.line for mark in marks_in(lines)] == [0, 1, 2]


@given(st.lists(st.sampled_from(["a ", "___ ", "\n", "\r\n", "é😀 "]), max_size=12))
def test_filling_every_mark_with_itself_changes_nothing(parts: list[str]) -> None:
    lines = Lines.of("".join(parts))
    marks = marks_in(lines)
    assert filled(lines, marks, ["___"] * len(marks)) == lines
    assert filled(lines, marks, [""] * len(marks)) == lines


@given(
    st.lists(st.sampled_from(["a ", "___ ", "\n"]), max_size=12),
    st.integers(min_value=0, max_value=5),
)
def test_marks_are_found_again_behind_those_that_were_filled(parts: list[str], done: int) -> None:
    lines = Lines.of("".join(parts))
    marks = marks_in(lines)
    first, rest = marks[:done], marks[done:]
    texts = ["xx yy"] * len(first)
    assert marks_in(filled(lines, first, texts)) == [shifted(m, first, texts) for m in rest]


def test_the_text_between_marks_has_plain_line_breaks() -> None:
    lines = Lines.of("a ___ b\r\nc\r\nd ___\r\n")
    one, other = marks_in(lines)
    assert between(lines, one, other) == " b\nc\nd "


def test_marks_far_apart_are_not_measured() -> None:
    lines = Lines.of("___\n" + "x\n" * 1000 + "___\n___\n")

    def count(text: str) -> int:
        assert len(text) < 100
        return len(text)

    groups = grouped(lines, marks_in(lines), 100, 8, count)
    assert [len(group) for group in groups] == [1, 2]


def test_a_group_never_outgrows_its_canvas() -> None:
    lines = Lines.of("___ + ___ + ___ + ___\n")
    groups = grouped(lines, marks_in(lines), 22, 8, len)
    assert [len(group) for group in groups] == [2, 2]


@pytest.mark.asyncio
async def test_one_mark_is_a_hole_whose_lengths_are_raced(tokenizer: Tokenizer) -> None:
    scripted = Marked(tokenizer, ["a + b"])
    fill = await scripted.fill("def add(a, b):\n    return ___\n")
    (job,) = scripted.engine.jobs
    assert job.widths
    assert job.single_line
    assert (fill.texts, fill.reason) == (["a + b"], "")


@pytest.mark.asyncio
async def test_in_turn_a_mark_reads_the_text_before_it_and_stops_at_the_next(
    tokenizer: Tokenizer,
) -> None:
    scripted = Marked(tokenizer, ["a, b", "a + b"], marks_together=False)
    fill = await scripted.fill("def add(___):\n    return ___\n\nadd(1, 2)\n")
    assert fill.texts == ["a, b", "a + b"]
    first, second = scripted.engine.jobs
    assert all(job.widths and job.single_line for job in (first, second))
    before, after = (tokenizer.decode(job.prompt) for job in (first, second))
    assert "add(1, 2)" not in before
    assert "def add(a, b):\n    return " in after
    assert "add(1, 2)" in after
    assert "___" not in before + after


@pytest.mark.asyncio
async def test_marks_of_one_canvas_are_solved_together(tokenizer: Tokenizer) -> None:
    scripted = Marked(tokenizer, ["a, b¦a + b"], mark_widths=[2, 8])
    fill = await scripted.fill("def add(___):\n    return ___\n\nadd(1, 2)\n")
    assert fill.texts == ["a, b", "a + b"]
    wide = scripted.engine.jobs[1]
    assert wide.widths == []
    assert wide.roles.count(bytes([Role.HOLE])) == 16
    pins = [i for i, role in zip(wide.canvas, wide.roles, strict=True) if role == Role.PIN]
    assert tokenizer.decode(pins) == "):\n    return \n\nadd(1, 2)\n"
    prompt = tokenizer.decode(wide.prompt)
    assert "___" not in prompt
    assert len(scripted.engine.jobs) <= 3


@pytest.mark.asyncio
async def test_a_mark_gets_the_width_that_suits_it(tokenizer: Tokenizer) -> None:
    scripted = Marked(tokenizer, ["a¦a, b"], mark_widths=[1, 2, 4, 8])
    fill = await scripted.fill("f(___) + g(___)\n")
    widths = [job.roles.count(bytes([Role.HOLE])) for job in scripted.engine.jobs]
    # The first text ends by itself from two positions on, the second one from four on.
    assert widths == [2, 4, 8, 16, 6]
    assert fill.texts == ["a", "a, b"]


@pytest.mark.asyncio
async def test_marks_far_apart_get_a_canvas_each_and_see_what_was_filled(
    tokenizer: Tokenizer,
) -> None:
    scripted = Marked(tokenizer, ["os", "path"])
    fill = await scripted.fill("import ___\n" + "x = 1\n" * 300 + "import ___\n")
    assert fill.texts == ["os", "path"]
    assert len(scripted.engine.jobs) == 2
    assert "___" not in tokenizer.decode(scripted.engine.jobs[0].prompt)


@pytest.mark.asyncio
async def test_marks_in_a_row_on_one_line_stay_where_they_are(tokenizer: Tokenizer) -> None:
    scripted = Marked(tokenizer, ["one", "two"], mark_widths=[250])
    fill = await scripted.fill("x = ___ + ___\n")
    assert fill.texts == ["one", "two"]
    assert tokenizer.decode(scripted.engine.jobs[1].prompt).endswith("x = one + ")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "done", "reason"),
    [
        ("!error", DoneKind.ERROR, "The script says so."),
        ("  ", DoneKind.CONVERGED, "The model proposed only white space."),
    ],
)
async def test_nothing_to_put_in_has_a_reason(
    tokenizer: Tokenizer, answer: str, done: DoneKind, reason: str
) -> None:
    fill = await Marked(tokenizer, [answer]).fill("x = ___\ny = ___\n")
    assert (fill.texts, fill.done, fill.reason) == (["", ""], done, reason)
