"""What was noted of lines holds for the tables made from them, as long as those lines stay."""

from __future__ import annotations

import pytest
from dg_lsp.context.around import around
from dg_lsp.lines import Lines
from dg_lsp.prompts.view import BEFORE_CHARS, view_at
from hypothesis import given, settings
from hypothesis import strategies as st

TABLE = Lines.of("\n".join(f"line {n}" for n in range(1_200)))


@pytest.mark.parametrize(
    ("edit", "holds"),
    [
        ((20, 21, ["x\n"]), True),
        ((20, 20, ["x\n", "y\n"]), True),
        ((1_100, 1_200, ["x"]), True),
        ((5, 6, ["x\n"]), True),
        ((5, 6, ["x\n", "y\n"]), False),
        ((5, 7, ["x\n"]), False),
        ((10, 11, ["x\n"]), False),
        ((19, 20, ["x\n"]), False),
        ((0, 1_200, ["x"]), False),
    ],
)
def test_a_note_holds_while_its_lines_stay(edit: tuple[int, int, list[str]], holds: bool) -> None:
    TABLE.note("some", 10, 20, "made of them")
    note = TABLE.replaced(*edit).noted("some")
    assert (note is not None and note.value == "made of them") is holds


def test_a_new_note_takes_the_place_of_the_old_one() -> None:
    TABLE.note("one", 0, 5, "old")
    TABLE.note("one", 3, 9, "new")
    assert TABLE.noted("one") == (3, 9, "new")
    assert TABLE.noted("none") is None


@settings(max_examples=60)
@given(st.data())
def test_a_cursor_sees_what_it_would_see_without_notes(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([3, 40, 90, 700]))
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    width = data.draw(st.sampled_from([0, 30, BEFORE_CHARS // 64, BEFORE_CHARS]))
    lines = Lines.of(newline.join(["import a", "class A:", *["x" * width] * size]))
    for _ in range(data.draw(st.integers(1, 8))):
        line = data.draw(st.integers(0, lines.count - 1))
        column = data.draw(st.integers(0, len(lines[line].rstrip("\r\n"))))
        fresh = Lines(lines.chunks)
        views = [view_at(one, line, column, path="a", language="python") for one in (lines, fresh)]
        assert views[0] == views[1]
        assert around(lines, line, "python") == around(fresh, line, "python")
        first = data.draw(st.sampled_from([line, 0, lines.count - 1]))
        new = data.draw(st.sampled_from([["y"], ["y", "z"], ["y" * 500]]))
        lines = lines.replaced(first, first + 1, [f"{text}{newline}" for text in new])
