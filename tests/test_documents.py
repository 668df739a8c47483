"""Documents follow every edit that an editor can send, in every position encoding."""

from __future__ import annotations

import re

import pytest
from dg_lsp.documents import ContentChange, Document, DocumentStore, typed_between
from dg_lsp.lines import CHUNK_LINES, Lines, split_lines
from dg_lsp.positions import Encoding, Position, Range, character_of, column_of
from hypothesis import given
from hypothesis import strategies as st

URI = "file:///a.py"
FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
TEXTS = ["", "a😀b", "é", "e\u0301", f"x{FAMILY}y", "日本語", "\ttab\t", "plain"]
UNITS = {
    Encoding.UTF8: ("utf-8", 1),
    Encoding.UTF16: ("utf-16-le", 2),
    Encoding.UTF32: ("utf-32-le", 4),
}

TEXT = st.text(st.sampled_from("ab \n\r\té😀\u2028\x0c\x0b\x85"), max_size=12)
ENCODINGS = st.sampled_from(Encoding)


def document(text: str) -> Document:
    return Document.of(URI, 1, "python", text)


def replace(start: tuple[int, int], end: tuple[int, int], text: str) -> ContentChange:
    return ContentChange(text, Range(Position(*start), Position(*end)))


def naive_lines(text: str) -> list[str]:
    """Line bodies by the specification: `\\n`, `\\r\\n` and `\\r` end a line, nothing else does."""
    return re.split(r"\r\n|\n|\r", text)


def naive_offset(text: str, line: int, character: int, encoding: Encoding) -> int:
    """The offset of a position by walking the text one character at a time."""
    spans = [m.span() for m in re.finditer(r"\r\n|\n|\r", text)]
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    if line >= len(starts):
        return len(text)
    codec, width = UNITS[encoding]
    offset, left = starts[line], character
    while offset < ends[line]:
        left -= len(text[offset].encode(codec)) // width
        if left < 0:
            break
        offset += 1
    return offset


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("line", TEXTS)
def test_every_column_survives_a_round_trip(line: str, encoding: Encoding) -> None:
    for column in range(len(line) + 1):
        assert column_of(line, character_of(line, column, encoding), encoding) == column


@pytest.mark.parametrize(
    ("encoding", "character", "column"),
    [
        (Encoding.UTF16, 2, 1),  # inside the surrogate pair of 😀
        (Encoding.UTF16, 3, 2),
        (Encoding.UTF8, 2, 1),
        (Encoding.UTF8, 4, 1),
        (Encoding.UTF8, 5, 2),
        (Encoding.UTF32, 2, 2),
        (Encoding.UTF16, 99, 3),
        (Encoding.UTF8, -1, 0),
    ],
)
def test_a_position_inside_a_character_is_its_start(
    encoding: Encoding, character: int, column: int
) -> None:
    assert column_of("a😀b", character, encoding) == column


@pytest.mark.parametrize("separator", ["\x0c", "\x0b", "\x85", "\u2028", "\u2029", "\x1c"])
def test_only_line_feed_and_carriage_return_break_lines(separator: str) -> None:
    assert split_lines(f"a{separator}b\nc") == [f"a{separator}b\n", "c"]


@given(TEXT)
def test_lines_join_to_the_text_and_split_as_the_specification_says(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert [line.rstrip("\r\n") for line in lines] == naive_lines(text)


@given(TEXT, st.lists(st.tuples(*[st.integers(0, 6)] * 4, TEXT), max_size=6), ENCODINGS)
def test_edits_give_the_text_that_a_naive_editor_gives(
    text: str, edits: list[tuple[int, int, int, int, str]], encoding: Encoding
) -> None:
    changed = document(text)
    for version, (line, character, to_line, to_character, new) in enumerate(edits, 2):
        change = replace((line, character), (to_line, to_character), new)
        start, end = sorted(
            naive_offset(text, *place, encoding)
            for place in ((line, character), (to_line, to_character))
        )
        text = text[:start] + new + text[end:]
        changed = changed.changed([change], version, encoding)
        assert changed.lines.text() == text
        assert changed.lines == Lines.of(text)
        assert changed.lines.between(0, changed.lines.count) == split_lines(text)
    assert changed.version == len(edits) + 1


def test_changes_of_one_notification_build_on_each_other() -> None:
    changes = [replace((0, 1), (0, 1), "\n"), replace((1, 0), (1, 1), "B")]
    assert document("ab").changed(changes, 2, Encoding.UTF16).lines.text() == "a\nB"


def test_a_change_without_a_range_is_the_whole_text() -> None:
    changed = document("old\ntext").changed([ContentChange("new")], 2, Encoding.UTF16)
    assert changed.lines.text() == "new"


def test_carriage_return_and_line_feed_that_meet_become_one_line_break() -> None:
    changed = document("a\rb\nc").changed([replace((1, 0), (1, 1), "")], 2, Encoding.UTF16)
    assert changed.lines.between(0, 9) == ["a\r\n", "c"]


def test_half_an_emoji_is_kept_as_one_unit_that_a_tokenizer_can_read() -> None:
    changed = document("ab").changed([replace((0, 1), (0, 1), "\ud83d")], 2, Encoding.UTF16)
    assert changed.lines.text() == "a\ufffdb"
    assert changed.place(Position(0, 2), Encoding.UTF16) == (0, 2)


def test_an_edit_leaves_the_version_before_as_it_was() -> None:
    old = document("one\ntwo\n")
    new = old.changed([replace((0, 0), (1, 3), "three")], 2, Encoding.UTF16)
    assert (old.lines.text(), new.lines.text()) == ("one\ntwo\n", "three\n")


def test_an_edit_in_a_large_file_copies_one_chunk_of_lines() -> None:
    old = Lines.of("x = 1\n" * CHUNK_LINES * 40)
    line = CHUNK_LINES * 20
    new = old.replaced(line, line + 1, ["y = 2\n"])
    shared = {id(chunk) for chunk in old.chunks} & {id(chunk) for chunk in new.chunks}
    assert len(shared) == len(old.chunks) - 1
    assert new[line] == "y = 2\n"


def test_deleting_most_of_a_file_leaves_few_chunks() -> None:
    lines = Lines.of("x\n" * CHUNK_LINES * 20)
    while lines.count > 100:
        middle = lines.count // 2
        lines = lines.replaced(middle, min(middle + 60, lines.count), [])
    assert len(lines.chunks) <= 2


@pytest.mark.parametrize(
    ("old", "new", "typed"),
    [
        ("a = \nb", "a = re\nb", "re"),
        ("a = \nb", "a = \nb", ""),
        ("a = )\nb", "a = re)\nb", "re"),
        ("a = \nb", "a =\nb", None),
        ("a = \nb", "a = re\nB", None),
        ("a = \nb", "a = re\n\nb", None),
        ("a = \nb", "c = re\nb", None),
    ],
)
def test_typing_at_the_cursor_is_told_from_other_changes(
    old: str, new: str, typed: str | None
) -> None:
    assert typed_between(document(old), document(new), 0, 4) == typed


SPELLINGS = [
    ("file:///C:/Work/a b.py", "file:///c%3A/Work/a%20b.py"),
    ("file:///c:/x.py", "FILE:///C:/x.py"),
    ("file://Server/share/a.py", "file://server/share/a.py"),
    ("file:///a/%E6%97%A5.py", "file:///a/日.py"),
    ("vscode-notebook-cell:/C%3A/n.ipynb#W0s", "vscode-notebook-cell:/c:/n.ipynb#W0s"),
]


@pytest.mark.parametrize(("first", "second"), SPELLINGS)
def test_spellings_of_one_uri_are_one_document(first: str, second: str) -> None:
    store = DocumentStore()
    store.put(Document.of(first, 1, "python", "text"))
    found = store.get(second)
    assert found is not None
    assert found.uri == first
    store.remove(second)
    assert len(store) == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("untitled:Untitled-1", "untitled:Untitled-2"),
        ("vscode-notebook-cell:/n.ipynb#W0s", "vscode-notebook-cell:/n.ipynb#W1s"),
        ("file:///a%23b.py", "file:///a#b.py"),
        ("file:///a%25b.py", "file:///ab.py"),
        ("file:///A.py", "file:///a.py"),
    ],
)
def test_different_documents_stay_apart(first: str, second: str) -> None:
    store = DocumentStore()
    store.put(Document.of(first, 1, "python", ""))
    assert store.get(second) is None
