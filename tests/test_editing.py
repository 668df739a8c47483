"""Edits by the completer: lines of any length, room to grow, and the file's own white space."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from dg_engine.job import CanvasJob, DoneKind, Role
from dg_engine.tokenizer import Tokenizer
from dg_lsp.completion import Completer, EditDraft, Source
from dg_lsp.edit_windows import Room, end_of, windows_of
from dg_lsp.indentation import Habit, habit_around, in_habit, with_endings_of
from dg_lsp.lines import split_lines
from dg_lsp.prompts import prompt_format_for
from hypothesis import example, given
from hypothesis import strategies as st

from tests.completer_fixtures import Scripted, tokenizer
from tests.scripted_engine import ScriptedEngine

__all__ = ["tokenizer"]

CANVAS = 256


def seeds_of(job: CanvasJob, tokenizer: Tokenizer) -> str:
    roles = zip(job.canvas, job.roles, strict=True)
    return tokenizer.decode([i for i, role in roles if role == Role.SEED])


def in_front(job: CanvasJob, tokenizer: Tokenizer) -> str:
    """What is pinned before the first open position."""
    first = next(i for i, role in enumerate(job.roles) if role != Role.PIN)
    return tokenizer.decode(job.canvas[:first])


def file_of(count: int, newline: str = "\n") -> Source:
    lines = [f"    total = total + item{number}" for number in range(count)]
    return Source("a.py", "python", newline.join(["def f():", *lines, "    return total", ""]))


@pytest.mark.asyncio
async def test_an_edit_is_tried_with_each_amount_of_room_to_grow(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["return 1"], edit_slack=[0, 4, 8])
    await scripted.completer.edit(file_of(1), 2, 2, "shorten")
    holes = [job.roles.count(bytes([Role.HOLE])) for job in scripted.engine.jobs]
    assert holes == [0, 4, 8]
    assert [job.may_end for job in scripted.engine.jobs] == [False, True, True]


@pytest.mark.asyncio
async def test_an_edit_may_become_longer_or_shorter(tokenizer: Tokenizer) -> None:
    source = Source("a.py", "python", "def f():\n    x = 1\n    y = 2\n")
    for answer in ("x = 1 + 1", "a"):
        scripted = Scripted(tokenizer, [answer], edit_slack=[8])
        edit = await scripted.completer.edit(source, 2, 2, "change it")
        assert edit.new_text == f"    {answer}"


@pytest.mark.asyncio
async def test_lines_longer_than_a_canvas_are_solved_in_overlapping_windows(
    tokenizer: Tokenizer,
) -> None:
    source = file_of(60)
    scripted = Scripted(tokenizer, ["\n    a", "\n    b", "\n    c", "\n    d", ""], edit_slack=[8])
    edit = await scripted.completer.edit(source, 2, 61, "shorten")
    jobs = scripted.engine.jobs
    assert len(jobs) > 3
    assert all(len(job.canvas) <= CANVAS for job in jobs)
    old = "\n" + "\n".join(source.text.split("\n")[1:61])
    # The first line break and its indentation are pinned.
    assert "\n    " + "".join(seeds_of(job, tokenizer) for job in jobs) == old
    assert in_front(jobs[1], tokenizer).endswith("\n    a")
    assert in_front(jobs[2], tokenizer).endswith("\n    a\n    b")
    assert edit.new_text.startswith("    \n    a\n    b\n    c\n    d")
    assert edit.done is DoneKind.CONVERGED


@pytest.mark.asyncio
async def test_windows_that_change_nothing_give_the_same_bytes(tokenizer: Tokenizer) -> None:
    class Echo(ScriptedEngine):
        """Answers with the seeds."""

        def _filled(self, job: CanvasJob, answer: str) -> list[int]:
            return job.canvas

    source = file_of(60, "\r\n")
    completer = Completer(
        Echo(tokenizer, [""]), tokenizer, prompt_format_for(tokenizer, Path("tiny"))
    )
    completer.settings = msgspec.structs.replace(completer.settings, edit_slack=[0])
    edit = await completer.edit(source, 2, 61, "leave it")
    assert edit.new_text == "\r\n".join(source.text.split("\r\n")[1:61])
    assert edit.reason == "The model would change nothing here."


@pytest.mark.asyncio
async def test_a_window_that_fails_leaves_every_line_as_it_was(tokenizer: Tokenizer) -> None:
    source = file_of(60)
    scripted = Scripted(tokenizer, ["\n    a", "!error"], edit_slack=[8])
    edit = await scripted.completer.edit(source, 2, 61, "shorten")
    assert edit.new_text == "\n".join(source.text.split("\n")[1:61])
    assert (edit.done, edit.reason) == (DoneKind.ERROR, "The script says so.")
    assert not edit.bad_input


@pytest.mark.asyncio
async def test_what_was_solved_in_time_stands_when_the_time_is_up(tokenizer: Tokenizer) -> None:
    source = file_of(60)
    scripted = Scripted(tokenizer, ["\n    a"], edit_slack=[8])
    jobs = scripted.engine.jobs
    now = [0.0]
    completer = Completer(
        scripted.engine,
        tokenizer,
        prompt_format_for(tokenizer, Path("tiny")),
        scripted.completer.settings,
        clock=lambda: now[0],
    )

    def one_second_later(job: CanvasJob) -> None:
        now[0] += 1.0

    scripted.engine.on_job = one_second_later
    edit = await completer.edit(source, 2, 61, "shorten", deadline_ms=1500)
    assert len(jobs) == 2
    assert edit.done is DoneKind.DEADLINE
    assert edit.new_text.startswith("    \n    a\n    a\n    total")
    assert edit.new_text.endswith("item59")


@pytest.mark.asyncio
async def test_more_lines_than_any_edit_takes_are_bad_input(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, [""], edit_tokens=100)
    edit = await scripted.completer.edit(file_of(60), 1, 60, "change it")
    assert edit.reason.startswith("The lines are ")
    assert edit.reason.endswith("choose at most 100 tokens.")
    assert (edit.done, edit.bad_input) == (DoneKind.ERROR, True)
    assert scripted.engine.jobs == []


@pytest.mark.asyncio
async def test_every_draft_is_the_whole_new_text(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["\n    a", "\n    b", ""], edit_slack=[8])
    drafts: list[EditDraft] = []
    edit = await scripted.completer.edit(file_of(60), 2, 61, "x", on_draft=drafts.append)
    assert drafts[0].text.endswith("item59")
    assert drafts[-1].text == edit.new_text
    steps = [draft.step for draft in drafts]
    assert steps == sorted(steps)
    assert steps[-1] == edit.steps
    assert all(draft.entropy > 0 for draft in drafts)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "line", "answer", "new"),
    [
        ("def f():\n    \n\nf()\n", 2, "x = 1\n    return x", "    x = 1\n    return x"),
        ("", 1, "import os", "import os"),
        ("a = 1\n\nb = 2\n", 2, "c = 3", "c = 3"),
    ],
)
async def test_blank_lines_are_written_in(
    tokenizer: Tokenizer, text: str, line: int, answer: str, new: str
) -> None:
    scripted = Scripted(tokenizer, [answer])
    edit = await scripted.completer.edit(Source("a.py", "python", text), line, line, "write it")
    assert edit.new_text == new
    (job,) = scripted.engine.jobs
    assert job.widths


WHITE_SPACE = {
    # text, first and last line, answer for the open ids, new text
    "tabs": ("if a:\n\tb\n\tc\n", 2, 2, "x\n    y\n        z", "\tx\n\ty\n\t\tz"),
    "tabs in go": ("func f() {\n}\n", 1, 1, "func f() {\n    x", "func f() {\n\tx"),
    "blanks": ("if a:\n  b\n  if c:\n    d\n", 2, 2, "x\n\ty", "  x\n  y"),
    "aligned behind tabs": ("if a:\n\tb(c,\n\t  d)\n", 2, 2, "x\n\t  y", "\tx\n\t  y"),
    "crlf": ("if a:\r\n    b\r\n    c\r\n", 2, 3, "x\n    y\n    z", "    x\r\n    y\r\n    z"),
    "cr": ("if a:\r    b\r    c\r", 2, 2, "x\n    y", "    x\r    y"),
    "no last break": ("if a:\n    b", 2, 2, "x\n    y\n", "    x\n    y"),
    "a blank last line": ("if a:\n    b\n\n", 2, 3, "x\n", "    x\n"),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("case", WHITE_SPACE)
async def test_an_edit_keeps_the_white_space_of_its_file(tokenizer: Tokenizer, case: str) -> None:
    text, first, last, answer, new = WHITE_SPACE[case]
    language = "go" if case.endswith("go") else "python"
    scripted = Scripted(tokenizer, [answer], edit_slack=[40])
    edit = await scripted.completer.edit(Source("a", language, text), first, last, "change it")
    assert edit.new_text == new


def test_lines_that_stay_keep_their_own_line_break_in_a_mixed_file() -> None:
    old = ["a\r\n", "b\n", "c\r\n", "d\r\n"]
    assert with_endings_of("a\nb\nx\nd", old, "\n") == "a\r\nb\nx\r\nd"


@pytest.mark.parametrize(
    ("text", "language", "habit"),
    [
        ("a:\n  b\n  c\n", "yaml", Habit(False, 2)),
        ("def f():\n    if a:\n        b\n", "python", Habit(False, 4)),
        ("if a:\n\tb\n\tc\n", "python", Habit(True, 4)),
        ("all: a\n    # none yet\n", "makefile", Habit(True, 4)),
        ("", "python", Habit(False, 4)),
    ],
)
def test_the_habit_of_a_file_is_seen(text: str, language: str, habit: Habit) -> None:
    assert habit_around(text, language) == habit


@given(st.text(st.sampled_from("ab \t\n"), max_size=40), st.sampled_from([2, 4, 8]), st.booleans())
def test_indenting_twice_is_indenting_once(text: str, width: int, tabs: bool) -> None:
    habit = Habit(tabs, width)
    once = in_habit(text, "", habit)
    assert in_habit(once, "", habit) == once
    assert [line.strip() for line in once.split("\n")] == [
        line.strip() for line in text.split("\n")
    ]


@given(
    st.text(st.sampled_from("ab\n é😀"), max_size=120),
    st.integers(min_value=1, max_value=20),
)
@example("aa😀é  😀", 7)  # the last two parts are more tokens together than apart
def test_windows_joined_again_are_the_text(tokenizer: Tokenizer, text: str, room: int) -> None:
    parts = windows_of(text, tokenizer.encode, tokenizer.decode, room)
    assert "".join(parts) == text
    longest = max((len(tokenizer.encode(part)) for part in parts), default=0)
    assert longest <= max(room, 4)  # a character may be spread over four tokens


@given(st.text(st.sampled_from("ab\n "), max_size=60), st.integers(min_value=0, max_value=30))
def test_the_end_of_a_text_is_whole_lines_that_fit(
    tokenizer: Tokenizer, text: str, room: int
) -> None:
    end = end_of(text, tokenizer.encode, room)
    assert text.endswith(end)
    assert len(tokenizer.encode(end)) <= room
    assert end == "" or end == text or end.startswith("\n")


@pytest.mark.parametrize("canvas", [8, 64, 256])
def test_a_canvas_is_shared_out_without_a_rest(canvas: int) -> None:
    room = Room.of(canvas, 32, canvas // 16)
    assert room.solved + room.fresh + room.pins + canvas // 16 == canvas
    assert room.fresh > canvas // 2 - 1


def test_split_lines_agree_with_the_endings_that_are_kept() -> None:
    old = split_lines("a\r\nb\r\n")[:-1]
    assert with_endings_of("a\nb\nc", old, "\n") == "a\r\nb\r\nc"
