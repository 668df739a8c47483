"""Diagnostics of other servers as places for the next edit, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from dg_lsp.documents import Document
from dg_lsp.lines import Lines
from dg_lsp.next_edit.desk import NextEdits, Request
from dg_lsp.next_edit.diagnostics import MOST_TOLD, Diagnostic
from dg_lsp.next_edit.finder import Found, found_after
from dg_lsp.next_edit.proposal import Origin

TEXT = """\
export function total(rows: Row[], limit: number) {
  let sum = 0;
  for (const row of rows) {
    sum += Math.min(row.size, limit);
  }
  return sum > limit ? limit : sum;
}
"""
UNKNOWN = "Cannot find name '{}'."


class Editor:
    """A document that is edited, and another server that says what is wrong in it."""

    def __init__(self, text: str = TEXT, language: str = "typescript") -> None:
        self.document = Document("file:///project/a.ts", 1, language, Lines.of(text))
        self.desk = NextEdits()

    def becomes(self, text: str) -> Editor:
        old = self.document
        self.document = Document(old.uri, old.version + 1, old.language, Lines.of(text))
        self.desk.changed(old, self.document)
        return self

    def replace(self, old: str, new: str) -> Editor:
        """Replace the first occurrence of a text."""
        text = self.document.lines.text()
        assert old in text
        return self.becomes(text.replace(old, new, 1))

    def at(self, name: str, message: str = UNKNOWN, after: int = 1) -> list[Diagnostic]:
        """A complaint at each occurrence of a name, from a line on."""
        return [
            Diagnostic(number, found.start(), found.end(), message.format(name))
            for number in range(after, self.document.lines.count)
            for found in re.finditer(rf"\b{name}\b", self.document.lines[number])
        ]

    def told(self, found: Sequence[Diagnostic] = (), *, whole: bool = True) -> Editor:
        self.desk.diagnosed(self.document, found, whole=whole)
        return self

    @property
    def request(self) -> Request:
        return self.desk.request(self.document, "a.ts")

    @property
    def found(self) -> Found:
        request, document = self.request, self.document
        return found_after(document.lines, document.language, request.edits, known=request.known)

    def made(self, found: Found) -> str:
        """The line of the certain proposal, once it is taken."""
        assert found.certain is not None
        assert found.certain.origin is Origin.DIAGNOSTIC
        return found.certain.made(self.document.lines).strip()


def renamed() -> Editor:
    """Nothing was wrong, and then a parameter got another name."""
    return Editor().told().replace("limit: number", "most: number")


def test_a_name_that_is_unknown_since_its_edit_is_renamed_line_by_line() -> None:
    editor = renamed()
    made: list[str] = []
    while (found := editor.told(editor.at("limit")).found).certain is not None:
        made.append(editor.made(found))
        editor.becomes(found.certain.applied(editor.document.lines).text())
    assert made == ["sum += Math.min(row.size, most);", "return sum > most ? most : sum;"]
    assert "limit" not in editor.document.lines.text()


def test_a_proposal_is_no_more_than_the_name() -> None:
    editor = renamed()
    proposal = editor.told(editor.at("limit")).found.certain
    assert proposal is not None
    assert (proposal.line, proposal.text) == (3, "mos")  # the t is there already
    assert proposal.end - proposal.start == len("limi")


def test_only_the_places_that_are_complained_about_change() -> None:
    editor = renamed()
    (first, *_) = editor.at("limit", after=5)
    assert editor.made(editor.told([first]).found) == "return sum > most ? limit : sum;"


def test_an_edit_that_was_typed_in_pieces_is_one() -> None:
    editor = Editor().told().replace("limit: number", "m: number")
    editor.told(editor.at("limit"))
    editor.replace("m: number", "most: number")
    assert editor.made(editor.told(editor.at("limit")).found).startswith("sum += Math.min(row")


def test_what_was_wrong_before_the_edit_is_not_its_doing() -> None:
    editor = Editor()
    editor.told(editor.at("limit"))
    editor.replace("limit: number", "most: number")
    found = editor.told(editor.at("limit")).found
    assert (found.certain, found.likely) == (None, [])


def test_where_nobody_told_of_the_time_before_the_model_has_to_agree() -> None:
    editor = Editor().replace("limit: number", "most: number")
    found = editor.told(editor.at("limit")).found
    assert found.certain is None
    assert [(one.line, one.origin) for one in found.likely] == [
        (3, Origin.MODEL),
        (5, Origin.MODEL),
    ]


def test_what_code_actions_tell_of_is_not_the_whole() -> None:
    editor = Editor().told(whole=False).replace("limit: number", "most: number")
    found = editor.told(editor.at("limit"), whole=False).found
    assert found.certain is None
    assert found.likely != []


@pytest.mark.parametrize(
    "message",
    [
        "'{}' is declared but its value is never read.",
        "declared and not used: {}",
        "Local variable `{}` is assigned to but never used",
        "Cannot find name 'row'.",
        "Type 'number' is not assignable to type 'string'.",
        "Expected 2 arguments, but got 1.",
        "{} is a bad name, and nothing is undefined",
    ],
)
def test_messages_that_say_anything_else_lead_nowhere(message: str) -> None:
    editor = renamed()
    found = editor.told(editor.at("limit", message)).found
    assert (found.certain, found.likely) == (None, [])


@pytest.mark.parametrize(
    "message",
    [
        "Cannot find name '{}'. Did you mean 'most'?",
        "Undefined name `{}`",
        '"{}" is not defined',
        "undefined: {}",
        "use of undeclared identifier '{}'",
        "cannot find value `{}` in this scope",
        "Unresolved reference '{}'",
        'Cannot access attribute "{}" for class "Rows*"',
        "Property '{}' does not exist on type 'Row'.",
        'No parameter named "{}"',
        'Module has no attribute "{}"',
    ],
)
def test_language_servers_say_in_many_ways_that_a_name_is_unknown(message: str) -> None:
    editor = renamed()
    assert "most" in editor.made(editor.told(editor.at("limit", message)).found)


def test_a_complaint_about_another_name_on_the_line_leads_nowhere() -> None:
    editor = renamed()
    found = editor.told(editor.at("row", UNKNOWN.format("limit"), after=2)).found
    assert (found.certain, found.likely) == (None, [])


def test_a_complaint_that_covers_a_name_twice_leads_nowhere() -> None:
    editor = renamed()
    whole = Diagnostic(5, 0, 40, UNKNOWN.format("limit"))
    assert editor.told([whole]).found.certain is None


def test_the_edited_lines_themselves_stay_as_the_user_left_them() -> None:
    text = "let sum = 0;\nuse(sum, limit);\n"
    editor = Editor(text).told().replace("use(sum", "use(all")
    assert editor.told(editor.at("sum", after=1)).found.certain is None


def test_a_rename_that_was_taken_back_leaves_nothing() -> None:
    editor = renamed().replace("most: number", "limit: number")
    assert editor.told(editor.at("limit")).found.certain is None


def test_one_name_that_became_two_leads_nowhere() -> None:
    editor = renamed().replace("row.size, limit", "row.size, least")
    found = editor.told(editor.at("limit", after=5)).found
    assert (found.certain, found.likely) == (None, [])


def test_what_is_imported_now_is_something_else() -> None:
    text = 'import { limit } from "./a";\nuse(limit);\n'
    editor = Editor(text).told().replace("{ limit }", "{ most }")
    found = editor.told(editor.at("limit")).found
    assert (found.certain, found.likely) == (None, [])


def test_diagnostics_count_for_the_version_that_they_were_told_for() -> None:
    editor = renamed()
    editor.told(editor.at("limit")).replace("let sum", "\n  let sum")
    assert editor.request.known.found == ()
    assert editor.found.certain is None


def test_a_document_that_is_opened_anew_starts_with_nothing_known() -> None:
    editor = renamed()
    editor.desk.closed(editor.document.uri)
    assert editor.told(editor.at("limit")).found.certain is None


def test_where_a_call_is_wrong_since_the_edit_the_model_is_asked_first() -> None:
    text = "get(one, 1)\n\nget(one, 1)\nget(one, 1)\nget(one, 1)\n"
    editor = Editor(text, "python").told().replace("1)", "1, True)")
    assert [one.line for one in editor.told().found.likely] == [2, 3, 4]
    wrong = Diagnostic(4, 0, 11, 'Argument missing for parameter "deep"')
    assert [one.line for one in editor.told([wrong]).found.likely] == [4, 2, 3]


def test_many_diagnostics_are_held_up_to_a_bound() -> None:
    editor = renamed()
    many = [Diagnostic(1, 0, 3, f"wrong {number}") for number in range(2 * MOST_TOLD)]
    for _ in range(3):
        editor.told(many[:MOST_TOLD], whole=False).told(many[MOST_TOLD:], whole=False)
    assert len(editor.request.known.found) == MOST_TOLD
