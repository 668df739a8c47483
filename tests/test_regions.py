"""Lines that an edit waits for are followed exactly, or given up."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from dg_lsp.documents import ContentChange, Document
from dg_lsp.lines import split_lines
from dg_lsp.positions import Encoding, Position, Range
from dg_lsp.regions import Region, followed
from hypothesis import example, given
from hypothesis import strategies as st

URI = "file:///a.py"
UTF16 = Encoding.UTF16


def document(text: str, version: int = 1) -> Document:
    return Document.of(URI, version, "python", text)


class Typing(NamedTuple):
    """A file, the lines of it that wait, and one change; offsets count code points."""

    text: str
    first: int
    last: int
    start: int
    end: int
    new: str


@st.composite
def typings(draw: st.DrawFn) -> Typing:
    text = draw(st.text(st.sampled_from("ab\n\r é😀"), max_size=20))
    last = len(split_lines(text)) - 1
    first = draw(st.integers(0, last))
    start = draw(st.integers(0, len(text)))
    return Typing(
        text,
        first,
        draw(st.integers(first, last)),
        start,
        draw(st.integers(start, len(text))),
        draw(st.text(st.sampled_from("ab\n"), max_size=4)),
    )


def position_of(text: str, offset: int) -> Position:
    before = split_lines(text[:offset])
    return Position(len(before) - 1, len(before[-1].encode("utf-16-le")) // 2)


@given(typings())
@example(Typing("a\nb\n", 1, 1, 2, 2, "\n"))
@example(Typing("a\nb\n", 1, 1, 3, 3, "x"))
@example(Typing("\n\n", 1, 1, 1, 1, "\n"))
def test_a_region_is_where_its_characters_went_or_is_given_up(typing: Typing) -> None:
    text, first, last, start, end, new = typing
    if text[max(start - 1, 0) : start + 1] == "\r\n" or text[max(end - 1, 0) : end + 1] == "\r\n":
        return  # no position names the middle of a line break
    before = document(text)
    change = ContentChange(new, Range(position_of(text, start), position_of(text, end)))
    after = before.changed([change], 2, UTF16)
    region = Region.of(before.lines, first, last)
    low = sum(map(len, split_lines(text)[:first]))
    found = followed(region, before, change, after, UTF16)
    changed = text[:start] + new + text[end:]
    assert after.lines.text() == changed
    if found is None:
        return
    assert found.bodies == region.bodies
    assert found.stands_in(after.lines)
    moved = len(new) - (end - start) if end <= low else 0
    assert sum(map(len, split_lines(changed)[: found.first])) == low + moved


@given(typings())
def test_typing_on_other_lines_never_gives_a_region_up(typing: Typing) -> None:
    text, first, last, start, end, new = typing
    if "\r" in text + new:
        return  # a lone return may join a line break that follows
    region = Region.of(document(text).lines, first, last)
    low = sum(map(len, split_lines(text)[:first]))
    high = sum(map(len, split_lines(text)[: last + 1]))
    is_last = last == len(split_lines(text)) - 1
    if not (end < low or (start >= high and not is_last)):
        return
    before = document(text)
    change = ContentChange(new, Range(position_of(text, start), position_of(text, end)))
    assert followed(region, before, change, before.changed([change], 2, UTF16), UTF16) is not None


@pytest.mark.parametrize(
    ("new", "first"),
    [
        ("x\na\nb\nc\n", 2),  # a line above
        ("b\nc\n", 0),  # a line less above
        ("a\nb\nc\nd\n", 1),  # a line behind
        ("a\nbb\nc\n", None),
        ("a\nc\n", None),
        ("", None),
    ],
)
def test_a_whole_new_text_is_compared_by_lines(new: str, first: int | None) -> None:
    before = document("a\nb\nc\n")
    change = ContentChange(new)
    found = followed(
        Region.of(before.lines, 1, 1), before, change, before.changed([change], 2, UTF16), UTF16
    )
    assert (found.first if found else None) == first
