"""What is kept of a session for a cursor's context, and how long it counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from dg_lsp.context.hunks import Hunk, Hunks
from dg_lsp.context.keeper import Keeper
from dg_lsp.documents import ContentChange, Document, DocumentStore
from dg_lsp.positions import Encoding, Position, Range
from dg_lsp.privacy.gate import Gate
from dg_lsp.prompts.view import Snippet, SnippetKind
from dg_lsp.shown.changes import Change

CANARY = "Kq7vR2mZ9tW4xLp8"


class Desk:
    """A keeper over one folder, with documents that tests open and edit."""

    def __init__(self, root: Path, *names: str) -> None:
        self.root = root
        self.documents = DocumentStore()
        self.keeper = Keeper(self.documents)
        self.keeper.configure([root.as_uri()], Gate([root.as_uri()]))
        for name in names:
            self.open(name, (root / name).read_text())

    def open(self, name: str, text: str) -> Document:
        document = Document.of((self.root / name).as_uri(), 1, "python", text)
        self.documents.put(document)
        self.keeper.opened(document)
        return document

    def type(self, name: str, line: int, column: int, text: str) -> Document:
        place = Position(line, column)
        before = self.documents.get((self.root / name).as_uri())
        assert before is not None
        change = ContentChange(text, Range(place, place))
        after = before.changed([change], before.version + 1, Encoding.UTF16)
        self.documents.put(after)
        self.keeper.changed(before, change, after)
        return after

    async def at(self, document: Document, line: int) -> list[Snippet]:
        """The context once everything in the background is done."""
        await self.keeper.settled()
        self.keeper.at(document, line)
        await self.keeper.settled()
        return list(self.keeper.at(document, line))


def kinds(snippets: list[Snippet]) -> list[tuple[str, str]]:
    return [(str(snippet.kind), snippet.path) for snippet in snippets]


@pytest.mark.asyncio
async def test_a_diagnostic_counts_while_its_line_stays(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    document = desk.open("a.py", "x = 1\ny = helper()\nz = 3\n" + "w = 1\n" * 40)
    desk.keeper.diagnosed(document, [(1, "helper is\n undefined"), (900, "nowhere")])
    wrong = Snippet("a.py", "line 2: helper is undefined", SnippetKind.DIAGNOSTIC)
    assert await desk.at(document, 2) == [wrong]
    assert await desk.at(document, 30) == []
    document = desk.type("a.py", 1, 10, "1")
    assert await desk.at(document, 2) == []


@pytest.mark.asyncio
async def test_a_secret_in_a_diagnostic_is_masked(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    document = desk.open("a.py", "x = 1\n")
    desk.keeper.diagnosed(document, [(0, f"password = '{CANARY}' is weak")])
    (snippet,) = await desk.at(document, 0)
    assert CANARY not in snippet.text


@pytest.mark.asyncio
async def test_edits_near_the_cursor_are_no_context_and_those_far_away_are(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.open("a.py", "line = 1\n" * 200)
    document = desk.type("a.py", 150, 0, "edited = 2\n")
    assert await desk.at(document, 150) == []
    (snippet,) = await desk.at(document, 10)
    assert (snippet.kind, snippet.path) == (SnippetKind.EDIT, "a.py")
    assert "edited = 2" in snippet.text


@pytest.mark.asyncio
async def test_a_closed_document_is_no_neighbour(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    same = "".join(f"field_{n} = parse_{n}(line)\n" for n in range(20))
    desk.open("b.py", same)
    document = desk.open("a.py", same)
    assert kinds(await desk.at(document, 10)) == [("neighbour", "b.py")]
    desk.documents.remove((tmp_path / "b.py").as_uri())
    desk.keeper.closed((tmp_path / "b.py").as_uri())
    assert await desk.at(document, 10) == []


@pytest.mark.asyncio
async def test_a_neighbour_stays_while_one_types_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    same = "".join(f"field_{n} = parse_{n}(line)\n" for n in range(20))
    other = "".join(f"other_{n} = write_{n}(page)\n" for n in range(20))
    desk.open("b.py", same)
    desk.open("c.py", other)
    document = desk.open("a.py", same)
    found = await desk.at(document, 10)
    for _ in range(3):
        document = desk.type("a.py", 10, 0, "other_1 = write_1(page)\n")
        assert await desk.at(document, 10) == found


@pytest.mark.asyncio
async def test_a_document_in_another_language_has_no_context(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    document = Document.of((tmp_path / "a.md").as_uri(), 1, "markdown", "import os\n")
    assert await desk.at(document, 0) == []


def test_edits_move_with_what_is_edited_above_them() -> None:
    hunks = Hunks()
    hunks.edited("file:///a", Change(50, 51, 52))
    hunks.edited("file:///a", Change(10, 11, 14))
    assert hunks.newest == [Hunk("file:///a", 10, 13), Hunk("file:///a", 53, 54)]
    hunks.edited("file:///a", Change(55, 56, 56))
    assert hunks.newest[0] == Hunk("file:///a", 53, 55)
    hunks.edited("file:///b", Change(0, 1, 1))
    hunks.closed("file:///a")
    assert hunks.newest == [Hunk("file:///b", 0, 0)]
