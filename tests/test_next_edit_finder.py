"""What an edit suggests for other places of its file, without a model."""

from __future__ import annotations

import pytest
from dg_lsp.lines import Lines
from dg_lsp.next_edit.finder import Found, found_after
from dg_lsp.next_edit.history import Edited, History
from dg_lsp.next_edit.proposal import Origin, Proposal, minimal, restores
from dg_lsp.shown.changes import change_between

URI = "file:///project/a.py"
SUM = """\
def total(values, start=0):
    count = start
    for value in values:
        count += value
    note = f"{count} of {values!r}"
    return count, note


print(total(values=[1], start=2))
values = 3
"""


class Editor:
    """A document that is edited, and what its edits suggest."""

    def __init__(self, text: str, language: str = "python") -> None:
        self.lines = Lines.of(text)
        self.language = language
        self.history = History()

    def replace(self, old: str, new: str) -> Editor:
        """Replace the first occurrence of a text."""
        text = self.lines.text()
        assert old in text
        self.becomes(text.replace(old, new, 1))
        return self

    def becomes(self, text: str) -> None:
        """The whole text is another."""
        after = Lines.of(text)
        change = change_between(self.lines, after)
        assert change is not None
        self.history.changed(URI, self.lines, change, after)
        self.lines = after

    @property
    def edits(self) -> list[Edited]:
        return self.history.of(URI)

    @property
    def found(self) -> Found:
        return found_after(self.lines, self.language, self.edits)

    def take_all(self) -> list[str]:
        """Take every certain proposal; the lines that they make."""
        made: list[str] = []
        while (proposal := self.found.certain) is not None and len(made) < 20:
            made.append(proposal.made(self.lines).strip())
            self.becomes(proposal.applied(self.lines).text())
        return made


def test_a_parameter_that_was_renamed_is_renamed_where_it_is_used() -> None:
    editor = Editor(SUM).replace("total(values,", "total(items,")
    assert editor.take_all() == [
        "for value in items:",
        'note = f"{count} of {items!r}"',
        "print(total(items=[1], start=2))",
    ]
    assert "values = 3" in editor.lines.text()


def test_a_local_name_is_renamed_with_all_its_uses() -> None:
    editor = Editor(SUM).replace("count = start", "sum_ = start")
    assert editor.take_all() == [
        "sum_ += value",
        'note = f"{sum_} of {values!r}"',
        "return sum_, note",
    ]


def test_a_rename_that_began_at_a_use_waits_for_a_second_one() -> None:
    editor = Editor(SUM).replace("return count", "return sum_")
    assert editor.found.certain is None
    editor.replace("{count}", "{sum_}")
    assert editor.take_all() == ["sum_ += value", "sum_ = start"]


def test_the_edits_of_one_rename_are_each_within_a_line_and_minimal() -> None:
    editor = Editor(SUM).replace("total(values,", "total(valued,")
    assert editor.found.certain == Proposal(2, 22, 23, "d", Origin.RENAME)


def test_a_function_is_renamed_where_it_is_called_and_a_method_on_self() -> None:
    editor = Editor(SUM).replace("def total", "def add")
    assert editor.take_all() == ["print(add(values=[1], start=2))"]
    cell = "class A:\n    def run(self):\n        return self.run() or other.run()\n"
    assert Editor(cell).replace("def run", "def go").take_all() == [
        "return self.go() or other.run()"
    ]


def test_an_attribute_is_renamed_in_a_class_that_inherits_none() -> None:
    cell = "class A{}:\n    def set(self):\n        self.x1 = 1\n        return self.x1\n"
    edited = Editor(cell.format("")).replace("self.x1 = 1", "self.y1 = 1")
    assert edited.take_all() == ["return self.y1"]
    edited = Editor(cell.format("(Base)")).replace("self.x1 = 1", "self.y1 = 1")
    assert edited.found.certain is None


QUIET = {
    "a use that is now another name of the scope": ("return count, note", "return start, note"),
    "a name that stands for something else there": ("total(values,", "total(count,"),
    "a comment": ("values = 3", "values = 3  # three"),
    "a new statement": ("values = 3", "values = 3\nmore = 4"),
    "a number": ("values = 3", "values = 4"),
    "a name and something else": ("count = start", "sum_ = start + 1"),
    "a name that nobody needs": ("for value in", "for _ in"),
}


@pytest.mark.parametrize(
    "line", ["import logging", "from a import logging", "from a.logging import logging"]
)
def test_another_import_is_no_rename(line: str) -> None:
    editor = Editor(f"{line}\n\nlogging.info(1)\n")
    editor.replace(line, line[: -len("logging")] + "warnings")
    assert editor.found.certain is None


def test_an_import_that_got_another_alias_is_a_rename() -> None:
    editor = Editor("import numpy as np\n\nnp.array(1)\n").replace("as np", "as n")
    assert editor.take_all() == ["n.array(1)"]


@pytest.mark.parametrize("case", QUIET)
def test_nothing_is_certain_after(case: str) -> None:
    assert Editor(SUM).replace(*QUIET[case]).found.certain is None


def test_of_several_bindings_only_the_loop_that_was_renamed_follows() -> None:
    text = "def f(a, b):\n    for x in a:\n        print(x)\n    for x in b:\n        print(x)\n"
    editor = Editor(text).replace("for x in a", "for item in a")
    assert editor.take_all() == ["print(item)"]
    assert editor.lines.text().endswith("    for x in b:\n        print(x)\n")


def test_a_rename_that_is_half_typed_and_taken_back_suggests_nothing() -> None:
    editor = Editor(SUM)
    for old, new in [("(values,", "(value,"), ("(value,", "(valu,"), ("(valu,", "(values,")]:
        editor.replace(old, new)
    assert editor.edits == []
    assert editor.found == Found(None, [], [])


def test_a_default_and_an_inner_function_with_the_same_name_are_left_alone() -> None:
    text = "x = 1\ndef f(x, y=x):\n    g = lambda x: x\n    def h(x): return x\n    return x\n"
    editor = Editor(text).replace("def f(x,", "def f(z,")
    assert editor.take_all() == ["return z"]


def test_a_change_that_was_made_twice_is_made_again_in_any_language() -> None:
    text = "let a = get(x, 1);\nlet b = get(y, 1);\nlet c = get(z, 1);\nlet d = set(z, 1);\n"
    editor = Editor(text, "javascript").replace("get(x, 1)", "get(x, 1, true)")
    assert editor.found.certain is None
    assert [p.line for p in editor.found.wider] == [1, 2, 3]
    editor.replace("get(y, 1)", "get(y, 1, true)")
    assert editor.found.certain == Proposal(2, 16, 16, ", true", Origin.REPEAT)


def test_where_scopes_are_not_known_a_name_needs_more_around_it() -> None:
    editor = Editor("ff(i);\nff(i)\nff(i, 2);\n", "javascript")
    editor.replace("ff(i)", "ff(j)").replace("ff(i)", "ff(j)")
    assert editor.found.certain is None
    editor = Editor("ff(i, 2);\n" * 3, "javascript")
    editor.replace("ff(i", "ff(j").replace("ff(i", "ff(j")
    assert editor.found.certain == Proposal(2, 3, 4, "j", Origin.REPEAT)


def test_several_changes_of_one_line_are_made_together() -> None:
    text = "a: List[Dict[str, int]]\nb: List[Dict[str, int]]\nc: List[Dict[str, int]] = x\n"
    editor = Editor(text)
    editor.replace("a: List[Dict[", "a: list[dict[")
    editor.replace("b: List[Dict[", "b: list[dict[")
    assert editor.take_all() == ["c: list[dict[str, int]] = x"]


def test_a_local_name_is_no_pattern_for_other_functions() -> None:
    other = SUM.replace("total", "other").partition("\n\n\n")[0]
    editor = Editor(f"{SUM}\n\n{other}\n").replace("total(values,", "total(items,")
    editor.replace("in values", "in items").replace("{values!r}", "{items!r}")
    editor.replace("total(values=", "total(items=")
    assert editor.found == Found(None, [], [])


def test_line_breaks_and_wide_letters_keep_their_places() -> None:
    text = "def f(ab):\r\n    é = '😀', ab\r\n    return ab\r\n"
    editor = Editor(text).replace("f(ab)", "f(cd)")
    editor.take_all()
    assert editor.lines.text() == text.replace("ab", "cd")


def test_a_file_too_large_to_look_through_is_left_alone() -> None:
    editor = Editor(SUM + "# ................\n" * 30_000).replace("total(values,", "total(items,")
    assert editor.found == Found(None, [], [])


def test_a_proposal_that_would_leave_a_bracket_open_is_dropped() -> None:
    text = "call(a,\n     b)\nother(a,\n      b)\ncall(a,\n     b, (\n     c))\nlast(a,\n     b)\n"
    editor = (
        Editor(text, "plaintext").replace("call(a,", "call(a, [").replace("other(a,", "other(a, [")
    )
    proposals = [editor.found.certain, *editor.found.likely, *editor.found.wider]
    assert proposals == [None]


def test_a_line_that_was_edited_or_would_be_as_it_was_is_no_place() -> None:
    lines = Lines.of("a = 1\nb = 2\n")
    history = [Edited(0, 1, ("old = 1\n",))]
    assert restores(minimal(lines, 0, "c = 1", Origin.REPEAT), lines, history)
    assert restores(minimal(lines, 1, "  old = 1", Origin.REPEAT), lines, history)
    assert not restores(minimal(lines, 1, "c = 2", Origin.REPEAT), lines, history)
