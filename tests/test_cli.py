"""The commands' own work, with a completer that answers as told and no engine behind it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from dg_engine.job import DoneKind, EngineInfo, Frame
from dg_lsp.cli import session, show
from dg_lsp.cli.errors import CliError, ExitCode
from dg_lsp.cli.main import app
from dg_lsp.cli.place import Position, line_spans, offset_of, parse_lines, parse_position
from dg_lsp.cli.watch import SURE, draw, shade, watching
from dg_lsp.completion import Completion, Draft, Edit, Piece, Source
from dg_lsp.prompts.settings import InfillSettings
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

CODE = "import math\n\n\ndef area(r):\n    return \n\n\nprint(area(2))\n"
PLACE = ":5:12"
INFO = EngineInfo("fake", 64, 100, "", "cpu", "float32", 1, True)
ANSWER = Completion("math.pi * r", DoneKind.CONVERGED, 3, 5, 0.9, {"prompt": 1.5, "total": 42.0})


class FakeCompleter:
    """Answers as told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.settings = InfillSettings()
        self.answer = ANSWER
        self.edited = Edit("    return r", DoneKind.CONVERGED, 2, 3, {"total": 9.0})
        self.drafts: list[Draft] = []
        self.asked: list[object] = []
        self.error: BaseException | None = None

    async def complete(
        self,
        source: Source,
        offset: int,
        *,
        multi_line: bool | None = None,
        deadline_ms: int | None = None,
        on_draft: Callable[[Draft], None] | None = None,
    ) -> Completion:
        self.asked.append((source.language, offset, multi_line, deadline_ms))
        if self.error:
            raise self.error
        for draft in self.drafts:
            assert on_draft is not None
            on_draft(draft)
        return self.answer

    async def edit(
        self,
        source: Source,
        first_line: int,
        last_line: int,
        instruction: str,
        *,
        deadline_ms: int | None = None,
    ) -> Edit:
        self.asked.append((first_line, last_line, instruction, deadline_ms))
        return self.edited


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCompleter:
    """The completer that every command gets."""
    completer = FakeCompleter()

    @contextlib.asynccontextmanager
    async def open_session(
        folder: Path, *, threads: int | None = None
    ) -> AsyncGenerator[session.Session]:
        yield session.Session(completer, INFO, 7.0)  # pyright: ignore[reportArgumentType]

    def usable_model(name: str | None) -> Path:
        return Path("fake")

    monkeypatch.setattr(session, "open_session", open_session)
    monkeypatch.setattr(session, "usable_model", usable_model)
    return completer


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "circle.py"
    path.write_text(CODE)
    return path


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*arguments])
    return result.exit_code, result.stdout, result.stderr


def test_plain_output_marks_the_insertion_between_three_lines_on_each_side(
    fake: FakeCompleter, code: Path
) -> None:
    exit_code, out, err = run("complete", f"{code}{PLACE}")
    assert (exit_code, err) == (0, "")
    assert out == (
        "\n\ndef area(r):\n    return «math.pi * r»\n\n\nprint(area(2))\n\n"
        "3 steps, 5 forwards, 42 ms, confidence 0.90\n"
    )
    assert fake.asked == [("python", CODE.index("return ") + 7, None, None)]


def test_json_is_one_object_with_the_promised_keys(fake: FakeCompleter, code: Path) -> None:
    exit_code, out, _ = run("complete", f"{code}{PLACE}", "--json", "--deadline-ms", "300")
    assert exit_code == 0
    answer = json.loads(out)
    assert answer == {
        "insert": "math.pi * r",
        "line": 5,
        "column": 12,
        "done": "converged",
        "steps": 3,
        "forwards": 5,
        "confidence": 0.9,
        "ms": {"start": 7.0, "prompt": 1.5, "total": 42.0},
    }
    assert fake.asked == [("python", CODE.index("return ") + 7, None, 300)]


@pytest.mark.parametrize(
    ("option", "multi_line"), [("--multi-line", True), ("--single-line", False)]
)
def test_the_number_of_lines_can_be_forced(
    option: str, multi_line: bool, fake: FakeCompleter, code: Path
) -> None:
    run("complete", f"{code}{PLACE}", option)
    assert fake.asked == [("python", CODE.index("return ") + 7, multi_line, None)]


def test_nothing_to_suggest_is_exit_code_1_with_the_reason(fake: FakeCompleter, code: Path) -> None:
    fake.answer = Completion("", DoneKind.CONVERGED, 1, 1, 0.0, {"total": 1.0}, "Nothing fits.")
    assert run("complete", f"{code}{PLACE}") == (1, "", "dg-lsp: Nothing fits.\n")
    exit_code, out, _ = run("complete", f"{code}{PLACE}", "--json")
    assert exit_code == 1
    assert json.loads(out)["insert"] == ""


def test_an_engine_that_fails_is_exit_code_3(fake: FakeCompleter, code: Path) -> None:
    fake.answer = Completion("", DoneKind.ERROR, 0, 0, 0.0, {"total": 1.0}, "It crashed.")
    assert run("complete", f"{code}{PLACE}") == (3, "", "dg-lsp: It crashed.\n")


def test_ctrl_c_is_exit_code_130(fake: FakeCompleter, code: Path) -> None:
    fake.error = KeyboardInterrupt()
    assert run("complete", f"{code}{PLACE}") == (130, "", "")


def test_edit_prints_a_diff_of_the_lines(fake: FakeCompleter, code: Path) -> None:
    exit_code, out, _ = run("edit", f"{code}:5-5", "return the radius")
    assert exit_code == 0
    name = str(code).lstrip("/")
    assert out.startswith(f"--- a/{name}\n+++ b/{name}\n@@ -2,7 +2,7 @@\n")
    assert "-    return \n+    return r\n" in out
    assert fake.asked == [(5, 5, "return the radius", None)]
    assert code.read_text() == CODE


def test_edit_as_json_carries_the_diff(fake: FakeCompleter, code: Path) -> None:
    _, plain, _ = run("edit", f"{code}:5", "return the radius")
    _, out, _ = run("edit", f"{code}:5", "return the radius", "--json")
    answer = json.loads(out)
    assert answer.pop("diff") == plain
    assert answer == {
        "done": "converged",
        "steps": 2,
        "forwards": 3,
        "ms": {"start": 7.0, "total": 9.0},
    }


@pytest.mark.parametrize(("bad_input", "exit_code"), [(True, 2), (False, 3)])
def test_lines_that_cannot_be_edited_are_bad_input_and_no_failure_of_the_engine(
    fake: FakeCompleter, code: Path, bad_input: bool, exit_code: int
) -> None:
    sentence = "The lines are 9000 tokens long; choose at most 4096 tokens."
    ms = {"total": 1.0}
    fake.edited = Edit("    return ", DoneKind.ERROR, 0, 0, ms, sentence, bad_input)
    assert run("edit", f"{code}:5", "keep it") == (exit_code, "", f"dg-lsp: {sentence}\n")


def test_an_edit_that_changes_nothing_is_exit_code_1(fake: FakeCompleter, code: Path) -> None:
    fake.edited = Edit("    return ", DoneKind.CONVERGED, 1, 1, {"total": 1.0}, "No change.")
    assert run("edit", f"{code}:5", "keep it") == (1, "", "dg-lsp: No change.\n")


DRAFT = Draft(
    2,
    [
        Piece("if x", "pin", 0.0),
        Piece("\x1b[31m", "hole", 0.0),
        Piece("?", "hole", 9.0),
        Piece("\na\nb\nc\nd\ne", "pin", 0.0),
    ],
    Frame("j", 2, []),
)


def test_watch_in_a_pipe_prints_every_draft_and_then_the_answer(
    fake: FakeCompleter, code: Path
) -> None:
    fake.drafts = [DRAFT, Draft(3, DRAFT.pieces, DRAFT.frame)]
    exit_code, out, _ = run("complete", f"{code}{PLACE}", "--watch")
    assert exit_code == 0
    assert out.index("step 2") < out.index("step 3") < out.index("«math.pi * r»")
    assert fake.settings.line.causal_sure is None  # or there might be no draft to draw


def test_in_a_terminal_the_last_draft_stays_and_nothing_escapes() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, color_system="truecolor", width=80)

    async def scenario() -> None:
        async with watching(console, CODE, 5, hold=0.0) as on_draft:
            on_draft(DRAFT)
            on_draft(Draft(3, DRAFT.pieces, DRAFT.frame))

    asyncio.run(scenario())
    assert "step 3" in screen.getvalue()
    assert "\x1b[31m" not in screen.getvalue()


def test_a_drawing_shades_holes_dims_pins_and_cuts_the_pinned_tail() -> None:
    text = draw(DRAFT, "before ")
    assert text.plain == "before if x␛[31m?\na\nb\nc"
    styles = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
    assert styles["if x"] == styles["\na\nb\nc"] == "dim"
    assert styles["␛[31m"] == "#{:02x}{:02x}{:02x}".format(*SURE)
    assert styles["?"] == shade(9.0) != shade(0.0)


def test_a_terminal_gets_colour_and_no_markers() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    assert show.can_colour(console)
    text = show.filled(CODE, CODE.index("return ") + 7, "r", coloured=True)
    assert "«" not in text.plain
    assert [text.plain[s.start : s.end] for s in text.spans if "green" in str(s.style)] == ["r"]


def test_without_colour_a_terminal_gets_markers() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, no_color=True)
    assert not show.can_colour(console)


@pytest.mark.parametrize(
    ("text", "line", "column", "offset"),
    [
        ("", 1, 1, 0),
        ("ab", 1, 3, 2),
        ("ab\n", 2, 1, 3),
        ("ab\r\ncd", 1, 3, 2),
        ("ab\r\ncd", 2, 1, 4),
        ("ab\rcd", 2, 2, 4),
        ("é𝄞x", 1, 3, 2),
    ],
)
def test_columns_count_characters_and_lines_end_in_all_three_ways(
    text: str, line: int, column: int, offset: int
) -> None:
    assert offset_of(text, Position(Path("f"), line, column)) == offset


@given(st.text(alphabet="ab\r\n\u2028é"), st.data())
def test_every_offset_within_a_line_is_reached_by_its_line_and_column(
    text: str, data: st.DataObject
) -> None:
    spans = line_spans(text)
    line = data.draw(st.integers(1, len(spans)))
    start, end = spans[line - 1]
    column = data.draw(st.integers(1, end - start + 1))
    assert offset_of(text, Position(Path("f"), line, column)) == start + column - 1
    with pytest.raises(CliError):
        offset_of(text, Position(Path("f"), line, end - start + 2))


def test_paths_may_hold_colons() -> None:
    assert parse_position("C:/a:b.py:3:4") == (Path("C:/a:b.py"), 3, 4)
    assert parse_lines("C:/a:b.py:3-4") == (Path("C:/a:b.py"), 3, 4)
    assert parse_lines("a.py:3") == (Path("a.py"), 3, 3)


@pytest.mark.parametrize(
    ("old", "new"),
    [("a\nb\n", "a\nc\n"), ("a", "b"), ("a\n", "a"), ("a\r\nb\r\n", "a\r\nc\r\n"), ("a\n", "a\n")],
)
def test_a_diff_applies(old: str, new: str, tmp_path: Path) -> None:
    import shutil
    import subprocess

    patch = shutil.which("patch")
    if patch is None:
        pytest.skip("patch is not installed")
    (tmp_path / "f.txt").write_bytes(old.encode())
    diff = show.unified_diff("f.txt", old, new)
    assert bool(diff) == (old != new)
    if diff:
        command = [patch, "--binary", "-p1"]
        subprocess.run(command, cwd=tmp_path, input=diff.encode(), check=True, capture_output=True)
    assert (tmp_path / "f.txt").read_bytes() == new.encode()


def test_exit_codes_are_what_the_readme_says() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    for code in ExitCode:
        assert f"| {int(code)} |" in readme
