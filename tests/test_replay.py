"""The player: what it takes, what it counts, and what it must notice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dg_lsp.bench.player import Pace
from dg_lsp.bench.replay import Replay, ReplayError, replay
from dg_lsp.bench.score import quantile, repeats_suffix
from dg_lsp.bench.sessions import AcceptPolicy, Delete, Event, Insert, Move, Session
from dg_lsp.bench.shown import Snapshot, Suggestion, misfit, read_suggestion
from dg_lsp.bench.tally import Tally, markdown, summary, total_of

from tests import server_fixtures
from tests.bench_fixtures import model
from tests.replay_server import command

__all__ = ["model"]

tiny = server_fixtures.tiny
TEXT = "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n"
CURSOR = TEXT.index("return ") + len("return ")
COMMAND_LINE = [sys.executable, "-c", "from dg_lsp.cli.main import main; main()"]


def keys(text: str, gap_ms: int = 100) -> list[Event]:
    """A session's start, and text typed character by character."""
    typed = [Insert(gap_ms * (i + 1), character) for i, character in enumerate(text)]
    return [AcceptPolicy(0, 3), Move(0, CURSOR), *typed]


def session(*events: Event) -> Session:
    return Session("made", "MIT", "made 1 to 2", "example.py", TEXT, list(events))


def play(tiny: Path, made: Session, *answers: str, pace: Pace | None = None) -> Tally:
    pace = pace or Pace(patient=True)
    server = command(tiny, *answers)
    run = replay([made], model="scripted", settings={}, pace=pace, command=server)
    return asyncio.run(run).tallies["made"]


def test_a_suggestion_that_the_author_would_type_is_taken(tiny: Path) -> None:
    tally = play(tiny, session(*keys("a + base")), " + base", "")
    assert (tally.keys, tally.shown, tally.kept) == (1, 1, 1)
    assert (tally.saved_keys, tally.kept_chars) == (7, 7)
    assert (tally.stale, tally.unanswered, tally.faults) == (0, 0, [])


def test_a_suggestion_is_taken_across_a_mended_error(tiny: Path) -> None:
    made = keys("a + bas")
    now = made[-1].at_ms
    made += [Insert(now + 1, "w"), Delete(now + 2, before=1), Insert(now + 3, "e")]
    tally = play(tiny, session(*made), " + base", "")
    assert (tally.kept, tally.saved_keys) == (1, 9)


def test_what_the_author_does_not_type_is_shown_and_left(tiny: Path) -> None:
    tally = play(tiny, session(*keys("a")), " * b")
    assert (tally.keys, tally.shown, tally.kept, tally.typed_chars) == (1, 1, 0, 1)


def test_a_short_suggestion_is_not_worth_taking(tiny: Path) -> None:
    assert play(tiny, session(*keys("xy")), "y").kept == 0


def test_forwards_and_stages_are_those_of_the_engine(tiny: Path) -> None:
    tally = play(tiny, session(*keys("a")), " * b")
    assert (tally.jobs, tally.forwards) == (1, 1)
    assert tally.prefetch_jobs == tally.prefetch_forwards
    assert {"receive", "prompt", "steps", "suggest", "return", "answer"} <= tally.ms.keys()
    assert sum(tally.ms["answer"]) >= sum(tally.ms["prompt"])


def test_a_silent_answer_has_a_reason(tiny: Path) -> None:
    tally = play(tiny, session(*keys("a")), " ")
    assert tally.shown == 0
    ((reason, count),) = tally.silences.items()
    assert (count, reason[-1:]) == (1, ".")


def test_a_key_that_comes_too_soon_overtakes_its_request(tiny: Path) -> None:
    tally = play(tiny, session(*keys("abcdef", gap_ms=1)), "!wait", "!wait", pace=Pace(speed=100))
    assert tally.overtaken >= 5
    assert (tally.stale, tally.unanswered) == (0, 0)


def test_keys_that_agree_with_what_is_shown_are_counted(tiny: Path) -> None:
    # The author goes on typing a text that differs at its end.
    tally = play(tiny, session(*keys("xab!")), "abc", "zzz")
    assert (tally.typed_through, tally.kept) == (2, 0)


def test_a_server_that_cannot_start_is_one_sentence() -> None:
    broken = [sys.executable, "-c", "raise SystemExit(3)"]
    run = replay([], model="", settings={}, pace=Pace(), command=broken)
    with pytest.raises(ReplayError, match="ended with status 3"):
        asyncio.run(run)


def item(start: int, end: int, text: str, version: int | None = None) -> dict[str, Any]:
    """An inline completion on the first line."""
    found: dict[str, Any] = {
        "insertText": text,
        "range": {
            "start": {"line": 0, "character": start},
            "end": {"line": 0, "character": end},
        },
    }
    if version is not None:
        found["command"] = {"title": "", "command": "x", "arguments": [{"version": version}]}
    return {"items": [found]}


SNAPSHOTS = {3: Snapshot("foo(", 4), 4: Snapshot("foo(a\nbar", 5)}


@pytest.mark.parametrize(
    ("result", "asked", "newest", "fault"),
    [
        (item(4, 4, "x)"), 3, 3, ""),
        (item(0, 4, "foo(x)"), 3, 3, ""),
        (item(4, 4, "x)", version=4), 3, None, "does not hold the cursor"),
        (item(5, 5, "x)", version=4), 3, None, ""),
        (item(4, 4, "x)", version=3), 3, 4, "for version 3, not for 4"),
        (item(4, 4, "x)", version=3), 4, 4, "older than the request"),
        (item(4, 4, "x)", version=9), 3, 3, "never sent"),
        (item(9, 9, "x)"), 3, 3, "does not lie in"),
        (item(2, 2, "x)"), 3, 3, "does not hold the cursor"),
        (item(0, 4, "bar("), 3, 3, "does not begin with what it covers"),
        (item(4, 4, ""), 3, 3, "is empty"),
        ({"items": [{}]}, 3, 3, "no inline completion list"),
    ],
)
def test_an_answer_that_does_not_fit_is_noticed(
    result: object, asked: int, newest: int | None, fault: str
) -> None:
    read = read_suggestion(result, SNAPSHOTS, asked, 4)
    assert read is not None
    found = read if isinstance(read, str) else misfit(read, SNAPSHOTS, asked, newest)
    assert (fault in found) if fault else found == ""


@pytest.mark.parametrize("result", [None, {"items": []}])
def test_nothing_is_no_suggestion(result: object) -> None:
    assert read_suggestion(result, SNAPSHOTS, 3, 4) is None


def test_positions_are_read_in_utf16_units() -> None:
    snapshots = {1: Snapshot("s = '😀'\nprint(", 9 + 6)}
    result = item(0, 0, "s")
    result["items"][0]["range"] = {
        "start": {"line": 1, "character": 6},
        "end": {"line": 1, "character": 6},
    }
    read = read_suggestion(result, snapshots, 1, 1)
    assert isinstance(read, Suggestion)
    assert misfit(read, snapshots, 1, 1) == "The range 14 to 14 does not hold the cursor at 15."


@pytest.mark.parametrize(
    ("text", "suffix", "repeats"),
    [
        ("b)", ")\n", False),  # one closer alone is the balance filter's matter
        ("b):", "):\n", True),
        ("a\nreturn b", "\nreturn b\n", True),
        ("a", "\nreturn b\n", False),
        ("}", "\n}\n", False),
    ],
)
def test_repeats_of_what_follows_are_told_from_closers(
    text: str, suffix: str, repeats: bool
) -> None:
    assert repeats_suffix(text, suffix) is repeats


def test_tallies_add_up() -> None:
    one = Tally(keys=3, shown=2, silences={"a.": 1}, ms={"answer": [1.0]}, faults=["x"])
    other = Tally(keys=1, kept=1, silences={"a.": 2, "b.": 1}, ms={"answer": [3.0]})
    whole = total_of([one, other])
    assert (whole.keys, whole.shown, whole.kept, whole.faults) == (4, 2, 1, ["x"])
    assert whole.silences == {"a.": 3, "b.": 1}
    assert whole.ms == {"answer": [1.0, 3.0]}
    assert one.ms == {"answer": [1.0]}


def test_a_report_holds_the_figures_and_encodes() -> None:
    tally = Tally(keys=4, asked=4, shown=2, kept=1, forwards=8, ms={"answer": [1.0, 3.0]})
    shown = summary(tally)
    assert shown["forwards_per_key"] == 2.0
    assert shown["kept_share"] == 0.5
    json.dumps(Replay("m", Pace(), {"a": tally}).as_object())
    assert "| kept | 1 (50% of those shown) |" in markdown(tally)
    assert "| a | 4 | 2 | 1 | 0 | 0 |" in Replay("m", Pace(), {"a": tally}).as_markdown()


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 3.0), (0.9, 5.0), (1.0, 5.0)])
def test_quantiles_are_values_that_occurred(share: float, value: float) -> None:
    assert quantile([5.0, 1.0, 3.0, 2.0, 4.0], share) == value


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND_LINE, "bench", *arguments], capture_output=True, text=True, check=False
    )


def test_the_command_replays_a_folder_with_a_real_engine(model: Path, tmp_path: Path) -> None:
    (tmp_path / "made.json").write_bytes(msgspec.json.encode(session(*keys("ab"))))
    ran = run(
        "replay", "--sessions", str(tmp_path), "--model", str(model), "--threads", "1",
        "--patient", "--json", "--set", "automaticDeadlineMs=20000",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["sessions"], told["patient"], told["whole"]["keys"]) == (1, True, 2)
    assert (told["whole"]["stale"], told["whole"]["unanswered"]) == (0, 0)
    assert told["whole"]["forwards"] >= 2


def test_the_command_fills_holes_with_a_real_engine(model: Path, tmp_path: Path) -> None:
    hole = {"id": "a", "prefix": "x = ", "middle": "1", "suffix": "\n", "path": "a.py"}
    holes = tmp_path / "holes.jsonl"
    holes.write_text(json.dumps(hole) + "\n")
    ran = run("quality", "--holes", str(holes), "--model", str(model), "--json")
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)["methods"]["default"]
    assert (told["holes"], told["outcomes"][0]["id"]) == (1, "a")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["replay", "--sessions", "/nowhere"], "holds no recorded session"),
        (["replay", "--only", "nobody"], "No session is called nobody"),
        (["replay", "--set", "threads"], "--set takes KEY=JSON"),
        (["quality", "--methods", "guessing"], "No method is called 'guessing'"),
        (["quality", "--holes", "/nowhere"], "Name a file of holes"),
    ],
)
def test_wrong_options_are_one_sentence(arguments: list[str], words: str, model: Path) -> None:
    ran = run(*arguments, "--model", str(model))
    assert ran.returncode == 2
    assert words in ran.stderr
    assert ran.stderr.count("\n") == 1
