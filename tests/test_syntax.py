"""The syntax around a cursor decides what a suggestion keeps and whether a block is wanted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from dg_lsp import suggestion
from dg_lsp.scope import opens_block
from dg_lsp.suggestion import Place, suggestion_of
from dg_lsp.syntax import window as window_module
from dg_lsp.syntax.checks import cut_where_parsed
from dg_lsp.syntax.grammars import LANGUAGES, grammar_of, parser_of
from dg_lsp.syntax.parsing import parsed_soon
from dg_lsp.syntax.window import AFTER_CHARS, BEFORE_CHARS, UNKNOWN, Window, window_of
from hypothesis import given
from hypothesis import strategies as st
from tree_sitter import Parser, Tree

from tests.cursors import at_cursor

GOLDEN = Path(__file__).parent / "golden" / "suggestion"
HOLES = Path(__file__).parents[1] / "bench" / "quality" / "holes_v1.jsonl"


class Golden(NamedTuple):
    """A filter, a document with a cursor, what is proposed there and what is left of it."""

    language: str
    title: str
    apply: suggestion.Filter
    document: str
    proposed: str
    left: str


def golden_cases() -> Iterator[Golden]:
    shape = re.compile(
        r"== ([^\n]+) \| (\w+)\n(.*?)\n-- proposed\n(.*?)\n-- left\n(.*?)\n(?==|\Z)", re.S
    )
    for path in sorted(GOLDEN.glob("*.txt")):
        for title, name, *texts in shape.findall(path.read_text(encoding="utf-8")):
            yield Golden(path.stem, title, getattr(suggestion, name), *texts)


@pytest.mark.parametrize(
    "case", list(golden_cases()), ids=lambda case: f"{case.language}: {case.title}"
)
def test_of_a_proposal_is_left(case: Golden) -> None:
    view = at_cursor(case.document, case.language)
    place = Place(view=view, multi_line="\n" in case.proposed)
    assert case.apply(case.proposed, place) == case.left


def test_each_language_has_golden_cases() -> None:
    stems = {case.language for case in golden_cases()}
    assert stems - {"lua"} == LANGUAGES - {"javascriptreact"}


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_grammar_comes_with_its_package(language: str) -> None:
    assert grammar_of(language) is not None


def test_right_answers_are_left_as_they_are() -> None:
    rows = [json.loads(line) for line in HOLES.read_text(encoding="utf-8").splitlines()]
    changed = [
        row["id"]
        for row in rows[::5]
        if suggestion_of(row["middle"], _place(row)).text != row["middle"].rstrip()
    ]
    assert len(rows[::5]) == 100
    assert changed == []


def _place(row: dict[str, str]) -> Place:
    view = at_cursor(f"{row['prefix']}‸{row['suffix']}", "python")
    return Place(view=view, multi_line="\n" in row["middle"])


BLOCKS = [
    ("python", "def f():\n    ‸\n", True),
    ("python", "def f(\n    a,\n):\n    ‸\n", True),
    ("python", "d = {\n    ‸\n}\n", False),
    ("python", "d = {\n    ‸\n", False),
    ("python", "d = {\n    'a':\n    ‸\n}\n", False),
    ("python", "def f():\n    '''Args:\n    ‸\n    '''\n", False),
    ("python", "# note:\n‸\n", False),
    ("javascript", "const f = () => {\n  ‸\n};\n", True),
    ("javascript", "class A {\n  ‸\n}\n", True),
    ("javascript", "const o = {\n  ‸\n};\n", False),
    ("javascript", "foo({\n  ‸\n", False),
    ("typescript", "interface A {\n  ‸\n}\n", True),
    ("typescript", "import {\n  ‸\n} from 'x';\n", False),
    ("go", "if x == y {\n\t‸\n}\n", True),
    ("go", "x := []int{\n\t‸\n}\n", False),
    ("rust", "fn f() {\n    ‸\n}\n", True),
    ("rust", "let a = A {\n    ‸\n};\n", False),
    ("rust", "use a::{\n    ‸\n};\n", False),
    ("c", "int f(void)\n{\n  ‸\n}\n", True),
    ("c", "int a[] = {\n  ‸\n};\n", False),
    ("cpp", "struct A {\n  ‸\n};\n", True),
    ("java", "void f() {\n  ‸\n}\n", True),
    ("java", "int[] a = {\n  ‸\n};\n", False),
    ("ruby", "def f\n  ‸\nend\n", True),
    ("ruby", "xs.each do |x|\n  ‸\nend\n", True),
    ("ruby", "h = {\n  ‸\n}\n", False),
    ("json", "{\n  ‸\n}\n", False),
    ("lua", "x = {\n  ‸\n}\n", True),
]


@pytest.mark.parametrize(("language", "marked", "opens"), BLOCKS)
def test_a_block_is_wanted_where_the_syntax_opens_one(
    language: str, marked: str, opens: bool
) -> None:
    assert opens_block(at_cursor(marked, language)) is opens


@pytest.mark.parametrize("lines", [10, 10_000])
def test_a_window_is_bounded_whatever_the_size_of_the_file(lines: int) -> None:
    body = "def f(a):\n    return a\n\n\n" * lines
    window = window_of(at_cursor(f"{body}x = ‸\n{body}", "python"))
    assert window is not None
    assert len(window.before) <= BEFORE_CHARS
    assert len(window.after) <= AFTER_CHARS
    assert window.tree.root_node.child(0).type == "function_definition"  # type: ignore[union-attr]


_HALF = "def half(number):\n    return number / 2\n\n\n"
_LAST = 'def last():\n    """Say."""\n    return half(‸'


def _told(line: str) -> str:
    """A function whose docstring says a line again and again, at the left margin."""
    return f'def told():\n    """Say it.\n\n{line * 60}    """\n    return 1\n\n\n'


_TOLD = _told("It is said as it was told.\n")
_TOLD_IN_BRACKETS = _told("It is said as it was told (or not).\n")


@pytest.mark.parametrize(
    ("document", "faults", "is_later"),
    [
        (f"{_HALF * 110}{_LAST})\n{_HALF}", 0, False),
        (f"{_TOLD}{_HALF * 70}{_LAST})\n{_HALF}", 0, True),
        (f"{_HALF * 100}{_LAST}\n", 1, True),
        (f"{_HALF * 60}{_TOLD_IN_BRACKETS}{_LAST}\n\n{_HALF}", 1, False),
    ],
    ids=["no faults", "begins in a string", "as many faults", "would begin in a string"],
)
def test_of_two_starts_a_window_has_the_later_one_where_there_are_no_more_faults(
    document: str, faults: int, is_later: bool
) -> None:
    window = window_of(at_cursor(document, "python"))
    assert window is not None
    assert window.faults == faults
    assert (len(window.before) <= BEFORE_CHARS / 2) == is_later


def test_a_docstring_that_is_cut_off_above_does_not_let_a_fault_pass() -> None:
    document = f"{_TOLD}{_HALF * 70}{_LAST})\n{_HALF}"
    place = Place(view=at_cursor(document, "python"), multi_line=False)
    assert suggestion.with_no_worse_syntax("2 3", place) == "2"


def test_what_takes_too_long_to_parse_is_not_tried_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    def too_long(window: Window, text: str) -> int:
        tried.append(text)
        return UNKNOWN

    window = window_of(at_cursor("x = ‸\n", "python"))
    assert window is not None
    monkeypatch.setattr(Window, "faults_with", too_long)
    assert cut_where_parsed(window, "\n".join("ab" * 20)) == ""
    assert len(tried) <= 3


_PROPOSED = st.text(st.sampled_from("ab(){}[]:;'\"\n %"), max_size=8)


@given(
    _PROPOSED,
    _PROPOSED,
    st.lists(_PROPOSED, max_size=12),
    st.sampled_from(sorted(LANGUAGES)),
    st.booleans(),
)
def test_a_window_says_of_a_text_what_it_would_say_of_it_alone(
    before: str, after: str, texts: list[str], language: str, ipython: bool
) -> None:
    parser = parser_of(language)
    assert parser is not None

    def fresh() -> Window:
        return Window(language, parser, before, after, ipython=ipython)

    window = fresh()
    for text in [*texts, *texts]:
        alone = fresh()
        told, tree = alone.faults_with(text), window.with_text(text)
        assert window.faults_with(text) == told
        assert tree is not None
        assert str(tree.root_node) == str(alone.with_text(text).root_node)  # type: ignore[union-attr]


def test_what_is_cut_back_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def noted(parser: Parser, text: bytes, old: Tree | None = None) -> Tree:
        parsed.append(text)
        return parsed_soon(parser, text, old)

    monkeypatch.setattr(window_module, "parsed_soon", noted)
    place = Place(view=at_cursor("def once(self):\n    s‸\n", "python"), multi_line=False)
    assert suggestion.with_no_worse_syntax("elf.write(node.class)", place) == "elf.write"
    assert len(parsed) >= 3
    assert len(parsed) == len(set(parsed))


def test_what_is_proposed_again_behind_a_key_that_it_said_is_parsed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[bytes] = []

    def noted(parser: Parser, text: bytes, old: Tree | None = None) -> Tree:
        parsed.append(text)
        return parsed_soon(parser, text, old)

    monkeypatch.setattr(window_module, "parsed_soon", noted)
    here, behind = (
        at_cursor(f"def again(self):\n    {typed}‸\n", "python") for typed in ("s", "se")
    )
    proposed = "elf.write(node.class)"
    for view, text in ((here, proposed), (behind, proposed[1:])):
        kept = suggestion.with_no_worse_syntax(text, Place(view=view, multi_line=False))
        assert kept == text[: text.index("(")]
        assert len(parsed) == len(set(parsed))
    assert b"def again(self):\n    self.write(node.class)\n" in parsed


def test_trees_go_when_a_window_is_made_and_not_while_an_answer_is_looked_at() -> None:
    window = window_of(at_cursor("def many(self):\n    ‸\n", "python"))
    assert window is not None
    texts = [f"self.text_{number}" for number in range(40)]
    trees = [window.with_text(text) for text in texts]
    assert all(window.with_text(text) is tree for text, tree in zip(texts, trees, strict=True))
    window_of(at_cursor("def others(self):\n    ‸\n", "python"))
    kept = [window.with_text(text) is tree for text, tree in zip(texts, trees, strict=True)]
    assert kept == sorted(kept)  # the oldest went
    assert not kept[0]
    assert kept[-1]


def test_what_took_too_long_to_parse_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    window = window_of(at_cursor("x = tried(‸)\n", "python"))
    assert window is not None

    def too_long(parser: Parser, text: bytes, old: Tree | None = None) -> Tree:
        raise ValueError

    with monkeypatch.context() as busy:
        busy.setattr(window_module, "parsed_soon", too_long)
        assert window.faults_with("again") == UNKNOWN
    assert window.faults_with("again") == 0


def test_the_inside_of_a_huge_line_has_no_window() -> None:
    assert window_of(at_cursor("x = [" + "12, " * 5_000 + "‸", "python")) is None


@given(
    st.text(st.sampled_from("ab(){}[]:;'\"\n\té😀/*#"), max_size=60),
    st.text(st.sampled_from("ab(){}[]:;'\"\n\té😀/*#"), max_size=20),
    st.sampled_from(sorted(LANGUAGES)),
)
def test_any_text_leaves_a_start_of_what_was_proposed(
    around: str, proposed: str, language: str
) -> None:
    half = len(around) // 2
    view = at_cursor(f"{around[:half]}‸{around[half:]}", language)
    place = Place(view=view, multi_line=True)
    kept = suggestion.with_no_worse_syntax(proposed, place)
    assert proposed.startswith(kept)
