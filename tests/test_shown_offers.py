"""A suggestion that was shown is offered as long as it fits what was typed since, and no longer."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from dg_lsp.documents import ContentChange, Document
from dg_lsp.lines import CHUNK_LINES, Lines
from dg_lsp.positions import Encoding, Position, Range
from dg_lsp.shown.changes import Change, change_between
from dg_lsp.shown.offer import Fate, Offer, moved, rests, typed_at
from dg_lsp.shown.pairs import are_owed, may_be_paired, owed_closers
from dg_lsp.shown.shelf import Shelf
from hypothesis import given, settings
from hypothesis import strategies as st

URI = "file:///project/example.py"


def split(marked: str) -> tuple[Document, int, int]:
    """A document from a text whose cursor is marked by ‸, and the cursor."""
    before, _, after = marked.partition("‸")
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    return Document.of(URI, 1, "python", before + after), line, column


def replaced(
    document: Document, start: tuple[int, int], end: tuple[int, int], text: str
) -> Document:
    change = ContentChange(text, Range(Position(*start), Position(*end)))
    return document.changed([change], document.version + 1, Encoding.UTF32)


class Fitting(NamedTuple):
    shown: str
    texts: list[str]
    now: str
    left: list[str] | None
    """None: the cursor is not at the place."""


FITTING = {
    "nothing typed": Fitting("x = ‸", ["a + b"], "x = ‸", ["a + b"]),
    "letters that agree": Fitting("x = ‸", ["a + b"], "x = a +‸", [" b"]),
    "all of it": Fitting("x = ‸", ["a + b"], "x = a + b‸", []),
    "more than all": Fitting("x = ‸", ["a"], "x = a + b‸", []),
    "another letter": Fitting("x = ‸", ["a + b"], "x = c‸", []),
    "the second agrees": Fitting("x = ‸", ["a + b", "call()"], "x = c‸", ["all()"]),
    "both agree": Fitting("x = ‸", ["a + b", "a - b"], "x = a ‸", ["+ b", "- b"]),
    "the same letter twice": Fitting("x = a‸a", ["aab"], "x = aa‸a", ["ab"]),
    "inside a word": Fitting("ret‸", ["urn x"], "retu‸", ["rn x"]),
    "before the place": Fitting("x = ‸", ["a"], "x ‸= ", None),
    "on another line": Fitting("x = ‸\ny", ["a"], "x = \n‸y", None),
    "the line changed before": Fitting("x = ‸", ["a"], "xy = ‸", None),
    "the line changed behind": Fitting("f(‸)", ["a"], "f(‸]", None),
    "into the second line": Fitting("if x:‸", ["\n    y = 1\n"], "if x:\n    y‸", [" = 1\n"]),
    "with Windows breaks": Fitting("a\r\n‸\r\n", ["b\r\nc"], "a\r\nb\r\n‸\r\n", ["c"]),
    "a closer added": Fitting("x = ‸", ["f(a)"], "x = f(‸)", ["a"]),
    "two closers added": Fitting("x = ‸", ["f(a[0])"], "x = f(a[‸])", ["0"]),
    "quote and bracket added": Fitting("‸", ['p("hi")'], 'p("‸")', ["hi"]),
    "only the quote added": Fitting("‸", ['p("hi")'], 'p("‸"', ["hi)"][:0]),
    "a closer typed over": Fitting("x = ‸", ["f(a) + 1"], "x = f(a)‸", [" + 1"]),
    "a closer that comes sooner": Fitting("x = ‸", ["f(a) + 1"], "x = f(‸)", []),
    "a closer before the rest": Fitting("x = g(‸)", ["f(a)"], "x = g(f(‸))", ["a"]),
    "a closer that nothing owes": Fitting("x = ‸", ["a)"], "x = ‸)", None),
    "an emoji": Fitting("x = ‸", ["'😀é'"], "x = '😀‸'", ["é"]),
}


@pytest.mark.parametrize("case", FITTING)
def test_what_is_left_of_an_offer(case: str) -> None:
    shown, texts, now, left = FITTING[case]
    offer = Offer.at(*split(shown), texts)
    document, line, column = split(now)
    typed = typed_at(offer, document.lines, line, column)
    assert (None if typed is None else rests(offer, typed)) == left


@pytest.mark.parametrize(
    ("typed", "owed"),
    [
        ("", ""),
        ("f(", ")"),
        ("f(a[", "])"),
        ("f(a)", ""),
        ("f('", "')"),
        ("f('(", "')"),
        (r"f('\'", "')"),
        ("f('a'", ")"),
        ("f)", ""),
        ("{[", "]}"),
    ],
)
def test_closers_that_typing_owes(typed: str, owed: str) -> None:
    assert owed_closers(typed) == owed
    assert are_owed(owed, typed)
    assert not are_owed(owed + ")", typed)
    assert may_be_paired(typed + owed) or not owed


MOVES: dict[str, tuple[str, tuple[int, int], tuple[int, int], str, Fate | None, int]] = {
    # a text, the edit, what becomes of "a + b" at the mark, and its line
    "typed along": ("x = ‸\n", (0, 4), (0, 4), "a +", Fate.OPEN, 0),
    "taken": ("x = ‸\n", (0, 4), (0, 4), "a + b", Fate.TAKEN, 0),
    "taken and typed on": ("x = ‸\n", (0, 4), (0, 4), "a + b\n", Fate.PASSED, 0),
    "typed against": ("x = ‸\n", (0, 4), (0, 4), "c", Fate.REJECTED, 0),
    "a lone closer": ("x = ‸\n", (0, 4), (0, 4), ")", Fate.REJECTED, 0),
    "a break": ("x = ‸()\n", (0, 4), (0, 4), "\n", Fate.REJECTED, 0),
    "a break, or a line below": ("x = ‸\n", (0, 4), (0, 4), "\n", Fate.OPEN, 0),
    "deleted before": ("x = ‸\n", (0, 3), (0, 4), "", None, 0),
    "deleted with the line above": ("y\nx = ‸\n", (0, 0), (1, 1), "", None, 0),
    "a line above": ("y\nx = ‸\n", (0, 0), (0, 0), "import os\n", Fate.OPEN, 2),
    "the line above gone": ("y\nx = ‸\n", (0, 0), (1, 0), "", Fate.OPEN, 0),
    "a letter above": ("y\nx = ‸\n", (0, 0), (0, 1), "z", Fate.OPEN, 1),
    "a letter below": ("x = ‸\ny\n", (1, 0), (1, 1), "z", Fate.OPEN, 0),
}


@pytest.mark.parametrize("case", MOVES)
def test_what_becomes_of_an_offer(case: str) -> None:
    marked, start, end, text, fate, line = MOVES[case]
    document, *place = split(marked)
    offer = Offer.at(document, *place, ["a + b"])
    edited = replaced(document, start, end, text)
    change = change_between(document.lines, edited.lines)
    assert change is not None
    after = moved(offer, edited.lines, change)
    assert (after and after.fate) == fate
    if after is not None:
        assert after.line == line
        assert after.alone == (not case.endswith(("above", "gone", "below")))


def test_a_break_that_a_text_begins_with_is_typed_along() -> None:
    document, *place = split("if x:‸\ny\n")
    offer = Offer.at(document, *place, ["\n    a()\n    b()"])
    edited = replaced(document, (0, 5), (0, 5), "\n    ")
    change = change_between(document.lines, edited.lines)
    assert change == Change(1, 1, 2)
    after = moved(offer, edited.lines, change)
    assert after is not None
    assert (after.alone, after.height) == (True, 2)
    typed = typed_at(after, edited.lines, 1, 4)
    assert typed is not None
    assert rests(after, typed) == ["a()\n    b()"]


def test_an_offer_that_was_taken_back_is_rejected() -> None:
    document, *place = split("x = ‸\n")
    ends: list[bool] = []
    shelf = Shelf(ends.append)
    shelf.put(Offer.at(document, *place, ["a + b"]))
    taken = replaced(document, (0, 4), (0, 4), "a + b")
    shelf.changed(document, taken)
    undone = replaced(taken, (0, 4), (0, 9), "")
    shelf.changed(taken, undone)
    assert ends == [True]
    assert shelf.open_at(undone, 0, 4) == []
    assert shelf.allowed(undone, 0, 4, ["a + b", "c"]) == ["c"]


def test_an_offer_that_was_left_is_open_again_once_it_is_typed_on() -> None:
    document, *place = split("x = ‸\n")
    shelf = Shelf(lambda taken: None)
    shelf.put(Offer.at(document, *place, ["a + b"]))

    def then(start: int, end: int, text: str) -> list[str]:
        """What is left of the offer behind the edit, the cursor behind its text."""
        nonlocal document
        old, document = document, replaced(document, (0, start), (0, end), text)
        shelf.changed(old, document)
        found = shelf.open_at(document, 0, start + len(text))
        return [rest for offer, typed in found for rest in rests(offer, typed)]

    assert then(4, 4, "a") == [" + b"]
    assert then(5, 5, "x") == []  # a typo
    assert then(5, 6, "") == []
    assert then(5, 5, " ") == ["+ b"]
    assert then(6, 6, "- c") == []  # another way
    assert then(9, 9, " + b") == []
    assert then(6, 13, "") == []
    shelf.turn_to(document, 0, 0)  # left
    assert then(6, 6, "+") == [" b"]
    assert then(4, 7, "") == ["a + b"]


@pytest.mark.parametrize("drawn", [True, False])
def test_where_the_editor_says_what_it_draws_only_that_can_be_rejected(drawn: bool) -> None:
    document, *place = split("x = ‸\ny = \n")
    ends: list[bool] = []
    shelf = Shelf(ends.append)
    shelf.drawn(shelf.put(Offer.at(document, 1, 4, ["b"])).number)
    offer = shelf.put(Offer.at(document, *place, ["a + b"]))
    if drawn:
        shelf.drawn(offer.number)
    shelf.turn_to(document, 1, 0)
    assert ends == [False] * drawn
    assert shelf.allowed(document, *place, ["a + b"]) == ["a + b"] * (not drawn)


def test_the_shelf_is_bounded() -> None:
    document, *place = split("x = ‸\n")
    shelf = Shelf(lambda taken: None, most=3)
    for count in range(9):
        shelf.put(Offer.at(document, *place, [f"a{count}"]))
    assert [offer.texts[0] for offer, _ in shelf.open_at(document, *place)] == ["a8", "a7", "a6"]


line_texts = st.lists(st.sampled_from(["a\n", "b\n", "\n"]), max_size=12)


@given(line_texts, line_texts, line_texts, line_texts)
def test_the_change_between_two_texts_covers_every_difference(
    head: list[str], cut: list[str], new: list[str], tail: list[str]
) -> None:
    old = [*head, *cut, *tail, ""]
    now = [*head, *new, *tail, ""]
    change = change_between(Lines.of("".join(old)), Lines.of("".join(now)))
    if change is None:
        assert old == now
        return
    assert old[: change.first] == now[: change.first]
    assert old[change.old_last :] == now[change.new_last :]
    assert change.first <= min(change.old_last, change.new_last)
    assert change.old_last - change.first <= len(cut)


def test_a_change_in_a_large_file_is_found_in_what_is_not_shared() -> None:
    lines = Lines.of("x = 1\n" * (20 * CHUNK_LINES))
    place = 7 * CHUNK_LINES + 3
    edited = lines.replaced(place, place + 1, ["y = 2\n", "z = 3\n"])
    assert change_between(lines, edited) == Change(place, place + 1, place + 2)


class Oracle:
    """A document as plain strings, with one place that is typed at; it forgets nothing."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.head, self.tail = ["import os\n"], ["print(x)\n"]
        self.middle, self.cursor = "", 0
        self.rejected = False
        self.taken = False

    @property
    def document(self) -> Document:
        text = "".join(self.head) + f"x = g({self.middle})\n" + "".join(self.tail)
        return Document.of(URI, 1, "python", text)

    @property
    def place(self) -> tuple[int, int]:
        typed = self.middle[: self.cursor]
        line = len(self.head) + typed.count("\n")
        start = typed.rfind("\n") + 1
        return line, len(typed) - start + (0 if start else len("x = g("))

    def insert(self, text: str, closer: str = "") -> None:
        self.middle = (
            self.middle[: self.cursor] + text + closer + self.middle[self.cursor :]
        )  # fmt: skip
        self.cursor += len(text)

    def erase(self) -> None:
        if self.cursor:
            self.middle = self.middle[: self.cursor - 1] + self.middle[self.cursor :]
            self.cursor -= 1

    def made(self, answer: str) -> str:
        """What stands at the place once an answer is taken."""
        return self.middle[: self.cursor] + answer + self.middle[self.cursor :]


OPERATIONS = st.one_of(
    st.tuples(st.just("type"), st.sampled_from("ab( )\n")),
    st.tuples(st.just("along"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["erase", "pair", "left", "right", "above", "below", "fewer"])),
)


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(["a(b) a", "ab", "a\nb", "(a)", "b"]), min_size=1, max_size=3),
    st.lists(OPERATIONS, max_size=14),
)
def test_what_is_served_makes_what_was_shown_whatever_was_typed(
    texts: list[str], script: list[tuple[str, object]]
) -> None:
    oracle = Oracle(texts)
    shelf = Shelf(lambda taken: None)
    shelf.put(Offer.at(oracle.document, *oracle.place, texts))
    agreed = True
    for operation in script:
        old = oracle.document
        apply(oracle, operation)
        shelf.changed(old, oracle.document)
        whole = oracle.middle in texts or not any(t.startswith(oracle.middle) for t in texts)
        agreed = agreed and not whole
        served = [
            text
            for offer, typed in shelf.open_at(oracle.document, *oracle.place)
            for text in rests(offer, typed)
        ]
        for text in served:
            assert text
            assert oracle.made(text) in texts
        if agreed and oracle.cursor == len(oracle.middle):
            # All that was ever typed agreed, so nothing may be missing.
            assert {oracle.made(text) for text in served} == {
                t for t in texts if t.startswith(oracle.middle)
            }


def apply(oracle: Oracle, operation: tuple[str, object]) -> None:
    """One thing that people do in an editor."""
    name, *rest = operation
    if name == "type":
        oracle.insert(str(rest[0]))
    elif name == "along":
        for _ in range(int(str(rest[0]))):
            typed = oracle.middle[: oracle.cursor]
            text = next((t for t in oracle.texts if t.startswith(typed)), "")
            oracle.insert(text[len(typed) : len(typed) + 1])
    elif name == "erase":
        oracle.erase()
    elif name == "pair":
        oracle.insert("(", ")")
    elif name == "left":
        oracle.cursor = max(oracle.cursor - 1, 0)
    elif name == "right":
        oracle.cursor = min(oracle.cursor + 1, len(oracle.middle))
    elif name == "above":
        oracle.head.append("y = 1\n")
    elif name == "below":
        oracle.tail.append("z = 1\n")
    elif name == "fewer" and len(oracle.head) > 1:
        oracle.head.pop()


def test_a_closer_whose_opener_was_erased_still_leaves_the_cursor_unclear() -> None:
    # `((|))` and backspace: what was typed reads `())`, and the cursor is not at its end.
    assert may_be_paired("())")
    assert not may_be_paired("(a")
    assert not may_be_paired("")
