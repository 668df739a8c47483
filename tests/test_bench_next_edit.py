"""The cases of next edits, and how they are played and counted."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from dg_lsp.bench.next_edit import Outcome, by_text, play, unasked
from dg_lsp.bench.next_edit_report import figures, markdown
from dg_lsp.bench.next_edits import CASES, KINDS, Case, LineChange, read_cases
from dg_lsp.documents import Document
from dg_lsp.lines import body_of
from dg_lsp.next_edit.desk import NextEdits
from dg_lsp.next_edit.diagnostics import Diagnostic
from dg_lsp.next_edit.proposal import Origin, Proposal, minimal

FOUND = read_cases()
UNKNOWN = "Undefined name `a`"
TEXT = "def f(a):\n    b = a\n    return a + 1\n"
CASE = Case(
    name="c",
    kind="rename",
    licence="MIT",
    source="none 1.0",
    path="none/a.py",
    text=TEXT,
    first=LineChange(0, "def f(x):"),
    rest=[LineChange(1, "    b = x"), LineChange(2, "    return x + 1")],
)


def test_there_are_enough_cases_of_every_kind() -> None:
    count = Counter(case.kind for case in FOUND)
    assert set(count) == set(KINDS)
    assert sum(count.values()) >= 60
    assert min(count.values()) >= 15
    assert len({case.name for case in FOUND}) == len(FOUND)


def test_every_package_has_its_licence_beside_the_cases() -> None:
    licences = CASES.with_name("LICENCES.md").read_text()
    for case in FOUND:
        package, _, versions = case.source.partition(" ")
        assert all(version in licences for version in versions.split(" to "))
        assert f"## {package} " in licences
        assert case.licence in licences


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.name)
def test_a_case_is_a_program_before_and_changes_every_line_it_names(case: Case) -> None:
    ast.parse(case.text)
    lines = case.text.splitlines()
    changes = [case.first, *case.rest]
    assert all(lines[change.line] != change.new for change in changes)
    assert len({change.line for change in changes}) == len(changes)
    if case.kind == "rename":
        ast.parse(case.target.text())
    assert bool(case.rest) == (case.kind in ("repeat", "rename"))


@pytest.mark.asyncio
async def test_a_case_is_played_until_nothing_is_left() -> None:
    outcome = await play(CASE, by_text)
    assert [shown.right for shown in outcome.shown] == [True, True]
    assert (outcome.places, outcome.missed) == (2, 0)


@pytest.mark.asyncio
async def test_what_the_author_did_alone_is_not_left_to_do() -> None:
    outcome = await play(CASE, by_text, by_hand=2)
    assert (outcome.places, len(outcome.shown), outcome.missed) == (1, 1, 0)


@pytest.mark.asyncio
async def test_the_first_wrong_proposal_ends_a_case_and_may_be_on_the_way() -> None:
    async def wrong(desk: NextEdits, document: Document, path: str) -> Proposal | None:
        return minimal(document.lines, 1, "    c = x", Origin.MODEL)

    async def halfway(desk: NextEdits, document: Document, path: str) -> Proposal | None:
        return minimal(document.lines, 2, "    return x + 1", Origin.MODEL)

    case = msgspec.structs.replace(CASE, rest=[LineChange(2, "    return x + 2")])
    for propose, on_the_way in ((wrong, False), (halfway, True)):
        outcome = await play(case, propose)
        assert [(s.right, s.on_the_way) for s in outcome.shown] == [(False, on_the_way)]
        assert outcome.missed == 1


@pytest.mark.asyncio
async def test_figures_add_up() -> None:
    outcomes: list[Outcome] = [await play(CASE, by_text), await play(CASE, unasked)]
    found = figures({"text": outcomes})
    counts = found["text"]["kinds"]["rename"]
    assert (counts["cases"], counts["places"], counts["right"], counts["wrong"]) == (2, 4, 4, 0)
    assert found["text"]["origins"]["rename"] == {"shown": 4, "right": 4, "wrong": 0}
    assert "| rename | 2 | 4 | 4 | 4 | 0 | 0 | 0 | 0 |" in markdown({"note": "", "ways": found})


def test_a_file_that_is_none_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"name": 1}\n')
    with pytest.raises(ValueError, match="Line 1 of"):
        read_cases(tmp_path / "a.jsonl")


def test_a_right_line_is_right_only_at_its_place() -> None:
    assert CASE.is_right(1, "    b = x")
    assert not CASE.is_right(2, "    b = x")
    assert body_of(CASE.target[2]) == "    return x + 1"


@pytest.mark.asyncio
async def test_a_case_may_be_told_what_another_server_says_of_each_version() -> None:
    versions: list[str] = []

    def told(desk: NextEdits, document: Document) -> None:
        versions.append(document.lines.text())
        uses = [n for n in (1, 2) if " a" in document.lines[n] and "x" in document.lines[0]]
        found = [
            Diagnostic(n, at := document.lines[n].index(" a") + 1, at + 1, UNKNOWN) for n in uses
        ]
        desk.diagnosed(document, found, whole=True)

    outcome = await play(CASE, by_text, language="plaintext", told=told)
    assert versions[0] == TEXT
    assert [(one.origin, one.right) for one in outcome.shown] == [(Origin.DIAGNOSTIC, True)] * 2
    assert outcome.missed == 0
    untold = await play(CASE, by_text, language="plaintext")
    assert (untold.shown, untold.missed) == ([], 2)
