"""Recorded sessions: what they hold, what their keys lead to, and how they are made."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from dg_lsp.bench.replay import SESSIONS
from dg_lsp.bench.sessions import (
    AcceptPolicy,
    Buffer,
    Delete,
    Event,
    Insert,
    Move,
    Pause,
    Session,
    read_sessions,
    typed_later,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replay.hand import Hand
from bench.replay.hunks import hunks_between

RECORDED = read_sessions(SESSIONS)
MIB = 1 << 20
LINES = st.sampled_from(
    ["x = 1\n", "def f(a):\n", "    return a\n", "y = f(x)\n", "# why\n", "\n", "z = g(x, y)\n"]
)


def test_there_are_enough_sessions_and_they_are_small() -> None:
    assert len(RECORDED) >= 20
    assert sum(path.stat().st_size for path in SESSIONS.iterdir()) < MIB
    assert len({session.name for session in RECORDED}) == len(RECORDED)


def test_every_package_has_its_licence_beside_the_recordings() -> None:
    notices = (SESSIONS / "LICENCES.md").read_text()
    for session in RECORDED:
        package, old, _, new = session.source.split()
        assert f"## {package} {old} and {new} ({session.licence})" in notices
    assert notices.count("Redistribution and use in source and binary forms") == 3


@pytest.mark.parametrize("session", RECORDED, ids=lambda session: session.name)
def test_a_recording_can_be_typed(session: Session) -> None:
    buffer = Buffer(session.text)
    now = 0
    for event in session.events:
        assert event.at_ms >= now
        now = event.at_ms
        if isinstance(event, Delete):
            assert buffer.cursor - event.before >= 0
            assert buffer.cursor + event.after <= len(buffer.text)
        if isinstance(event, Move):
            assert 0 <= event.offset <= len(buffer.text)
        buffer.apply(event)
    assert buffer.text != session.text
    ast.parse(session.text)


@pytest.mark.parametrize("kind", [Insert, Delete, Move, Pause, AcceptPolicy])
def test_the_recordings_hold_every_kind_of_event(kind: type[Event]) -> None:
    assert any(isinstance(event, kind) for session in RECORDED for event in session.events)


def test_some_keys_are_hit_wrong_and_mended() -> None:
    backspaces = [e for s in RECORDED for e in s.events if isinstance(e, Delete) and e.before == 1]
    keys = [event for s in RECORDED for event in s.events if isinstance(event, Insert)]
    assert 0.01 < len(backspaces) / len(keys) < 0.3


@settings(max_examples=60)
@given(old=st.lists(LINES, max_size=12), new=st.lists(LINES, max_size=12), seed=st.integers(0, 99))
def test_a_hand_leads_from_one_version_to_the_other(
    old: list[str], new: list[str], seed: int
) -> None:
    before, after = "".join(old), "".join(new)
    try:
        ast.parse(after)
    except SyntaxError:
        return  # only whole files are recorded
    hand = Hand(before, random.Random(seed))
    hand.make([change for hunk in hunks_between(before, after) for change in hunk.changes])
    assert hand.buffer.text == after
    times = [event.at_ms for event in hand.events]
    assert times == sorted(times)


MENDED: list[Event] = [
    Insert(0, "a"), Insert(1, "x"), Delete(2, before=1), Insert(3, "b"), Move(4, 0), Insert(5, "c"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "cursor", "last"),
    [
        ("a.", 1, 0),
        ("ab.", 2, 3),
        ("abc.", 3, None),
        ("cab.", 1, None),  # behind a jump
        ("ax.", 2, 1),
    ],
)
def test_what_is_typed_later_is_found_across_mended_errors(
    wanted: str, cursor: int, last: int | None
) -> None:
    assert typed_later(MENDED, 0, Buffer(".", 0), wanted, cursor) == last


def test_a_folder_without_recordings_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no recorded session"):
        read_sessions(tmp_path)


def test_a_broken_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"name": "a"}')
    with pytest.raises(ValueError, match=r"a\.json is not a recorded session"):
        read_sessions(tmp_path)
