"""Laws of next edits, over random files and random edits of them."""

from __future__ import annotations

import re

import hypothesis
from dg_lsp.documents import ContentChange, Document
from dg_lsp.lines import Lines, body_of
from dg_lsp.next_edit.diagnostics import NOTHING_KNOWN, Diagnostic, Known
from dg_lsp.next_edit.finder import found_after
from dg_lsp.next_edit.history import Edited, History
from dg_lsp.next_edit.proposal import Origin, Proposal, minimal
from dg_lsp.positions import Encoding, Range
from dg_lsp.shown.changes import change_between
from hypothesis import strategies as st

URI = "file:///project/a.py"
MANY = 1_000
"""More edits than there are."""
NAMES = st.sampled_from(["alpha", "beta", "x", "é", "self"])
NEW_NAMES = st.sampled_from(["new", "ñew", "new", "beta"])
STATEMENTS = st.sampled_from(
    [
        "def f({0}, {1}=1):",
        "    {0} = {1}",
        "    for {0} in {1}:",
        "        print({0}, '😀', {1})",
        "    return {0}.{1}({0}={1})",
        "class {0}:",
        "{0} = lambda {1}: {0}",
        "    '''",
        "",
    ]
)
LINES = st.builds(lambda form, a, b: form.format(a, b), STATEMENTS, NAMES, NAMES)
BREAKS = st.sampled_from(["\n", "\r\n"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A file that looks like Python, not always one that parses."""
    lines = draw(st.lists(LINES, min_size=1, max_size=10))
    lines += ["def f(alpha, beta):", "    x = beta", "    print(alpha, x)", "    return beta"]
    lines *= draw(st.integers(1, 2))
    return draw(BREAKS).join(lines)


@st.composite
def next_texts(draw: st.DrawFn, text: str) -> str:
    """The file after one edit: a word replaced, a line replaced, added or taken away."""
    lines = Lines.of(text)
    line = draw(st.integers(0, lines.count - 1))
    words = sorted(set(re.findall(r"[^\W\d]\w*", lines[line]))) or ["x"]
    match draw(st.sampled_from(["word", "word", "word", "line", "more", "less"])):
        case "word":
            old, new = draw(st.sampled_from(words)), draw(NEW_NAMES)
            changed = re.sub(rf"\b{old}\b", new, lines[line], count=1)
            return lines.replaced(line, line + 1, [changed]).text()
        case "line":
            ending = lines[line][len(body_of(lines[line])) :]
            return lines.replaced(line, line + 1, [draw(LINES) + ending]).text()
        case "more":
            return lines.replaced(line, line + 1, [draw(LINES) + "\n", lines[line]]).text()
        case _:
            kept = lines.between(0, line) + lines.between(line + 1, lines.count)
            return "".join(kept)


@st.composite
def sessions(draw: st.DrawFn) -> list[str]:
    """A file, and what it was after each of a few edits."""
    found = [draw(texts())]
    for _ in range(draw(st.integers(1, 5))):
        found.append(draw(next_texts(found[-1])))
    return found


def test_many_random_sessions_suggest_something() -> None:
    seen: list[bool] = []

    @hypothesis.given(sessions())
    @hypothesis.settings(max_examples=200, database=None, derandomize=True)
    def look(versions: list[str]) -> None:
        seen.append(bool(proposals(versions)[2]))

    look()
    assert sum(seen) > len(seen) / 10


def test_many_random_sessions_with_diagnostics_suggest_something_by_them() -> None:
    seen: list[bool] = []

    @hypothesis.given(sessions())
    @hypothesis.settings(max_examples=200, database=None, derandomize=True)
    def look(versions: list[str]) -> None:
        found = proposals(versions, True)[2]
        seen.append(any(one.origin is Origin.DIAGNOSTIC for one in found))

    look()
    assert sum(seen) > len(seen) / 20


def followed(versions: list[str]) -> tuple[Lines, list[Edited]]:
    """The newest version and its edits, as a session keeps them."""
    history = History()
    before = Lines.of(versions[0])
    for text in versions[1:]:
        after = Lines.of(text)
        change = change_between(before, after)
        if change is not None:
            history.changed(URI, before, change, after)
        before = after
    return before, history.of(URI)


def complaints(lines: Lines, is_known: bool) -> Known:
    """Another server that knows no name at all, since the last edit or since nobody knows when."""
    found = tuple(
        Diagnostic(number, word.start(), word.end(), f'"{word[0]}" is not defined')
        for number in range(lines.count)
        for word in re.finditer(r"[^\W\d]\w*", lines[number])
    )
    return Known(found, (MANY,) * len(found), 0 if is_known else None)


def proposals(
    versions: list[str], is_known: bool | None = None
) -> tuple[Lines, list[Edited], list[Proposal]]:
    """Everything that would be proposed for the newest version, or asked the model about."""
    lines, edits = followed(versions)
    known = NOTHING_KNOWN if is_known is None else complaints(lines, is_known)
    found = found_after(lines, "python", edits, known=known)
    return lines, edits, [*found.likely, *found.wider, *([found.certain] if found.certain else [])]


@hypothesis.given(sessions(), st.sampled_from([None, False, True]))
@hypothesis.settings(max_examples=600)
def test_a_proposal_never_restores_what_an_edit_took_away(
    versions: list[str], is_known: bool | None
) -> None:
    lines, edits, found = proposals(versions, is_known)
    for proposal in found:
        assert not any(edit.first <= proposal.line < edit.end for edit in edits)
        made = body_of(proposal.made(lines)).strip()
        for edit in edits:
            now = {body_of(line).strip() for line in edit.new(lines)}
            assert made not in {body_of(line).strip() for line in edit.old} - now


@hypothesis.given(sessions(), st.sampled_from(Encoding), st.sampled_from([None, False, True]))
@hypothesis.settings(max_examples=600)
def test_a_proposal_applies_cleanly_as_one_edit_of_an_editor(
    versions: list[str], encoding: Encoding, is_known: bool | None
) -> None:
    lines, _, found = proposals(versions, is_known)
    document = Document(URI, 1, "python", lines)
    for proposal in found:
        start, end = (
            document.position(proposal.line, column, encoding)
            for column in (proposal.start, proposal.end)
        )
        change = ContentChange(proposal.text, Range(start, end))
        after = document.changed([change], 2, encoding).lines
        assert after == proposal.applied(lines) != lines
        assert after.count == lines.count
        others = [n for n in range(lines.count) if n != proposal.line]
        assert [after[n] for n in others] == [lines[n] for n in others]


def undone(edit: Edited, lines: Lines) -> Lines:
    """The text without an edit."""
    if edit.count:
        return lines.replaced(edit.first, edit.end, edit.old)
    here = lines[edit.first] if edit.first < lines.count else ""
    return lines.replaced(edit.first, edit.first + 1, [*edit.old, here])


@hypothesis.given(sessions())
@hypothesis.settings(max_examples=200)
def test_edits_that_are_followed_lead_back_to_what_was_there(versions: list[str]) -> None:
    lines, edits = followed(versions)
    for edit in edits:
        new = edit.new(lines)
        assert len(new) == edit.count
        assert list(edit.old) != new
        assert edit.count == 0 or edit.end <= lines.count
    if len(versions) == 2 and edits:
        assert undone(edits[0], lines).text() == versions[0]


@hypothesis.given(st.text("ab(é😀 ", max_size=12), st.text("ab(é😀 ", max_size=12))
def test_a_minimal_edit_makes_the_line_and_shares_no_end_with_it(old: str, new: str) -> None:
    lines = Lines.of(f"first\n{old}\r\nlast")
    proposal = minimal(lines, 1, new, Origin.REPEAT)
    assert proposal.applied(lines).text() == f"first\n{new}\r\nlast"
    replaced = old[proposal.start : proposal.end]
    if old == new:
        assert replaced == proposal.text == ""
    if replaced and proposal.text:
        assert replaced[0] != proposal.text[0]
        assert replaced[-1] != proposal.text[-1]
