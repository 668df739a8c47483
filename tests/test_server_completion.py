"""The completer turns frames into text, and every way a job can end into an answer."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import msgspec
import pytest
from dg_engine.job import CanvasJob, Done, DoneKind, Frame, Priority, Role
from dg_engine.tokenizer import Tokenizer
from dg_lsp.completion import Completer, Draft, Source
from dg_lsp.languages import language_of
from dg_lsp.prompts import prompt_format_for

from tests.completer_fixtures import Scripted, tokenizer
from tests.scripted_engine import ScriptedEngine

__all__ = ["tokenizer"]

SOURCE = Source("a.py", "python", "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n")
CURSOR = SOURCE.text.index("return ") + len("return ")


@pytest.mark.asyncio
async def test_the_answer_is_what_fills_the_hole(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["a + b"], drafts=3, score=math.log(0.5))
    completion = await scripted.completer.complete(SOURCE, CURSOR)
    assert completion.insert == "a + b"
    assert (completion.done, completion.steps) == (DoneKind.CONVERGED, 3)
    assert completion.confidence == pytest.approx(0.5)
    assert completion.reason == ""
    assert completion.ms.keys() == {"prompt", "tokenise", "steps", "suggest", "total"}


@pytest.mark.asyncio
async def test_every_draft_is_shown_in_pieces_of_text(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["a + b"], drafts=3)
    drafts: list[Draft] = []
    await scripted.completer.complete(SOURCE, CURSOR, on_draft=drafts.append)
    assert [draft.step for draft in drafts] == [1, 2, 3]
    last = drafts[-1].pieces
    hole = "".join(piece.text for piece in last if piece.kind == "hole")
    pins = "".join(piece.text for piece in last if piece.kind == "pin")
    assert hole == "a + b"
    assert SOURCE.text[CURSOR:].startswith(pins)
    assert pins


@pytest.mark.asyncio
async def test_a_character_of_several_tokens_is_one_piece(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["'😀é'"])
    drafts: list[Draft] = []
    completion = await scripted.completer.complete(SOURCE, CURSOR, on_draft=drafts.append)
    assert completion.insert == "'😀é'"
    texts = [piece.text for piece in drafts[-1].pieces]
    assert "😀" in texts
    assert not any("\ufffd" in text for text in texts)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "done", "reason"),
    [
        ("   ", DoneKind.CONVERGED, "The model proposed only white space."),
        ("!error", DoneKind.ERROR, "The script says so."),
        ("!refuse", DoneKind.ERROR, "The scripted engine refuses."),
    ],
)
async def test_no_answer_has_a_reason(
    tokenizer: Tokenizer, answer: str, done: DoneKind, reason: str
) -> None:
    completion = await Scripted(tokenizer, [answer]).completer.complete(SOURCE, CURSOR)
    assert (completion.insert, completion.done, completion.reason) == ("", done, reason)


@pytest.mark.asyncio
async def test_an_engine_that_sleeps_through_its_deadline_is_not_waited_for(
    tokenizer: Tokenizer,
) -> None:
    scripted = Scripted(tokenizer, ["!wait"])
    completion = await scripted.completer.complete(SOURCE, CURSOR, deadline_ms=1)
    assert (completion.insert, completion.done) == ("", DoneKind.DEADLINE)
    assert completion.reason == "No draft was ready within the deadline."
    assert scripted.engine.running == 0


@pytest.mark.asyncio
async def test_cancelling_the_caller_cancels_the_job(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["!wait"])
    started = asyncio.Event()
    scripted.engine.on_job = lambda job: started.set()
    asked = asyncio.ensure_future(scripted.completer.complete(SOURCE, CURSOR))
    await started.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert scripted.engine.running == 0
    assert len(scripted.engine.cancelled) == 1


@pytest.mark.asyncio
async def test_a_block_is_asked_for_where_one_was_opened(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["x = 1\n    return x"])
    source = Source("a.py", "python", "def f():\n    \n\nf()\n")
    completion = await scripted.completer.complete(source, len("def f():\n    "))
    assert completion.insert == "x = 1\n    return x"
    one_line = await scripted.completer.complete(source, len("def f():\n    "), multi_line=False)
    assert one_line.insert == "x = 1"
    assert [job.single_line for job in scripted.engine.jobs] == [False, True]


@pytest.mark.asyncio
async def test_the_same_file_gives_the_same_job_whatever_its_line_endings(
    tokenizer: Tokenizer,
) -> None:
    scripted = Scripted(tokenizer, ["x = 1\n    return x"])
    inserts: list[str] = []
    for newline in ("\n", "\r\n", "\r"):
        text = "def f():\n    \n\nf()\n".replace("\n", newline)
        source = Source("a.py", "python", text)
        completion = await scripted.completer.complete(source, text.index("    ") + 4)
        inserts.append(completion.insert)
    assert len({(*job.prompt, -1, *job.canvas) for job in scripted.engine.jobs}) == 1
    assert inserts == ["x = 1\n    return x", "x = 1\r\n    return x", "x = 1\r    return x"]


@pytest.mark.asyncio
async def test_a_job_carries_what_the_caller_asked_for(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["1"])
    await scripted.completer.complete(
        SOURCE, CURSOR, deadline_ms=700, priority=Priority.PREFETCH, job_id="mine"
    )
    job = scripted.engine.prefetches[0]
    assert (job.id, job.deadline_ms, job.priority) == ("mine", 700, Priority.PREFETCH)


@pytest.mark.asyncio
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("first", "last", "answer", "new"),
    [
        (2, 2, "\n    return b + a", "    return b + a"),
        (1, 2, "def add(b, a):\n    return b + a", "def add(b, a):\n    return b + a"),
    ],
)
async def test_an_edit_gives_new_lines_without_the_last_break(
    tokenizer: Tokenizer, newline: str, first: int, last: int, answer: str, new: str
) -> None:
    text = "def add(a, b):\n    return a + b\n\nprint(1)\n".replace("\n", newline)
    scripted = Scripted(tokenizer, [answer])
    if first > 1:  # the first token, the line break and the indentation, is pinned
        scripted = Scripted(tokenizer, [answer.removeprefix("\n    ")])
    edit = await scripted.completer.edit(Source("a.py", "python", text), first, last, "change it")
    assert edit.new_text == new.replace("\n", newline)
    assert (edit.done, edit.reason) == (DoneKind.CONVERGED, "")
    roles = scripted.engine.jobs[0].roles
    assert (roles[0] == Role.PIN) == (first > 1)
    assert Role.HOLE not in roles


@pytest.mark.asyncio
async def test_an_edit_that_fails_keeps_the_old_lines(tokenizer: Tokenizer) -> None:
    edit = await Scripted(tokenizer, ["!error"]).completer.edit(SOURCE, 1, 1, "change it")
    assert (edit.new_text, edit.done) == ("def add(a, b):", DoneKind.ERROR)
    assert edit.reason == "The script says so."


class Racing(ScriptedEngine):
    """Answers with one row for each line of its script, the first as sure as `row_scores` says."""

    row_scores: tuple[float, ...] = (-0.1,)

    def _frame(self, job: CanvasJob, step: int, answer: str, done: Done | None) -> Frame:
        frames = [super(Racing, self)._frame(job, step, t, done) for t in answer.split("\n")]
        return msgspec.structs.replace(
            frames[0],
            ids=[frame.ids[0] for frame in frames][: job.alternatives],
            widths=[frame.widths[0] for frame in frames],
            scores=list(self.row_scores),
        )


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("rows", "wanted", "texts"),
    [
        ("a + b\na+b\na  + b\nb", 3, ["a + b", "b"]),
        ("a + b\nb\na\n1", 3, ["a + b", "b", "a"]),
        ("a + b\nb\na", 2, ["a + b", "b"]),
        ("a + b\nb", 1, ["a + b"]),
        ("  \nb", 2, ["b"]),
    ],
)
async def test_alternatives_of_a_race_differ_in_more_than_white_space(
    tokenizer: Tokenizer, rows: str, wanted: int, texts: list[str]
) -> None:
    engine = Racing(tokenizer, [rows])
    completer = Completer(engine, tokenizer, prompt_format_for(tokenizer, Path("tiny")))
    completion = await completer.complete(SOURCE, CURSOR, alternatives=wanted)
    assert [completion.insert, *completion.alternatives] == texts
    assert engine.jobs[0].widths


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("rows", "sure", "texts"),
    [
        ("a\nb\n1", (0.9, 0.5, 0.4), ["a", "b", "1"]),
        ("a\nb\n1", (0.9, 0.5, 0.1), ["a", "b"]),
        ("a\nb\n1", (0.01, 0.5, 0.1), ["a", "b"]),
        ("a\nb\n1", (0.9, math.nan, math.nan), ["a", "b", "1"]),
        ("  \nb\n1", (0.9, 0.1, 0.1), ["b", "1"]),  # better than nothing for who asks
    ],
)
async def test_alternatives_of_which_the_model_is_not_sure_are_left_out(
    tokenizer: Tokenizer, rows: str, sure: tuple[float, ...], texts: list[str]
) -> None:
    engine = Racing(tokenizer, [rows])
    engine.row_scores = tuple(math.log(s) for s in sure)
    completer = Completer(engine, tokenizer, prompt_format_for(tokenizer, Path("tiny")))
    completion = await completer.complete(SOURCE, CURSOR, alternatives=3)
    assert [completion.insert, *completion.alternatives] == texts


@pytest.mark.asyncio
async def test_the_syntax_around_the_cursor_is_read_while_the_engine_works(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = Scripted(tokenizer, ["!wait"])
    read: list[int] = []
    monkeypatch.setattr("dg_lsp.completion.window_of", lambda view: read.append(1))
    asking = asyncio.ensure_future(scripted.completer.complete(SOURCE, CURSOR))
    while not scripted.engine.jobs:
        assert not read  # the job goes first
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert read
    scripted.engine.release.set()
    assert (await asking).insert == "released"


@pytest.mark.asyncio
async def test_explain_shows_the_job_that_complete_sends(tokenizer: Tokenizer) -> None:
    scripted = Scripted(tokenizer, ["1"])
    explanation = scripted.completer.explain(SOURCE, CURSOR)
    await scripted.completer.complete(SOURCE, CURSOR, job_id="explain")
    assert scripted.engine.jobs == [explanation.job]
    assert [section.name for section in explanation.sections] == [
        "<fim_suffix>",
        "<fim_prefix>",
        "<fim_middle>",
    ]
    assert explanation.sections[1].text == SOURCE.text[:CURSOR]


@pytest.mark.parametrize(
    ("path", "language"),
    [("a/b.py", "python"), ("x.RS", "rust"), ("Makefile", "makefile"), ("noise", "plaintext")],
)
def test_a_path_tells_its_language(path: str, language: str) -> None:
    assert language_of(path) == language
