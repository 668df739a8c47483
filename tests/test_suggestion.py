"""Suggestions repeat nothing that stands there already and leave brackets no worse."""

from __future__ import annotations

import pytest
from dg_lsp.brackets import Balances, balance_of
from dg_lsp.lines import Lines
from dg_lsp.prompts.view import place_of, view_at
from dg_lsp.suggestion import (
    FILTERS,
    Filter,
    Place,
    at_the_indentation,
    first_line,
    suggestion_of,
    trimmed,
    where_it_is_run,
    with_balanced_brackets,
    with_line_endings,
    with_words_apart,
    with_words_in_prose,
    within_the_blocks,
    without_repeated_lines,
    without_repeated_rest,
    without_second_import,
    without_the_line_above,
)
from hypothesis import given
from hypothesis import strategies as st


def place(marked: str, *, multi_line: bool = False, language: str = "python") -> Place:
    """Where ‸ stands."""
    text = marked.replace("‸", "")
    line, column = place_of(text, marked.index("‸"))
    view = view_at(Lines.of(text), line, column, path="a.py", language=language)
    return Place(view=view, multi_line=multi_line)


SAME = "as it was"

TABLE: list[tuple[Filter, str, bool, str, str]] = [
    # filter, cursor, several lines wanted, proposed, left
    (first_line, "x = ‸\n", False, "1\ny = 2", "1"),
    (first_line, "x = ‸\n", True, "1\ny = 2", "1\ny = 2"),
    (first_line, "x = ‸\n", False, "\ny = 2", ""),
    (trimmed, "x = ‸\n", False, "1  ", "1"),
    (trimmed, "x = ‸\n", False, " \t", ""),
    (trimmed, "x = ‸b\n", False, "a + ", "a + "),
    (trimmed, "x = ‸ + b\n", False, "a ", "a"),
    (trimmed, "f(‸)\n", False, "a ", "a"),
    (trimmed, "def f():\n‸\n", True, "    a\n    \n", "    a"),
    # a word that would become another one
    (with_words_apart, "f(‸doc=1)\n", False, "doc", ""),
    (with_words_apart, "‸name = 1\n", False, "_", ""),
    (with_words_apart, "x = ‸name\n", False, "not ", "not "),
    (with_words_apart, "x = ‸name\n", False, "self.", "self."),
    (with_words_apart, "x = na‸me\n", False, "tural_na", "tural_na"),
    (with_words_apart, "x = ‸ + 1\n", False, "name", "name"),
    (with_words_apart, "regis‸ter_op\n", False, "ter", ""),
    (with_words_apart, "    ‸raise\n", False, "else:", ""),
    # points and figures where sentences stand
    (with_words_in_prose, "# what it is‸\nx = 1\n", False, ".", ""),
    (with_words_in_prose, "x = 1  # see 3‸\n", False, ".2", ".2"),
    (with_words_in_prose, '"""Since 0‸\n"""\n', False, ".9", ""),
    (with_words_in_prose, '"""Since 0‸\n"""\n', False, ".9 or later", SAME),
    (with_words_in_prose, "x = 0‸\n", False, ".9", SAME),
    (with_words_in_prose, "f(a‸\n", False, ")", SAME),
    (with_words_apart, '"""\n‸* push\n"""\n', False, "* pull", ""),
    (with_words_apart, "x = [\n    ‸'b',\n]\n", False, "'a',", SAME),
    (with_words_apart, '"""\n* push‸\n"""\n', False, " it", " it"),
    (with_words_apart, "    ‸a = 1\n", False, "b = ", "b = "),
    (with_words_apart, "    ‸1,\n", False, "'a':", "'a':"),
    (with_words_apart, "‸# -*- coding: utf-8 -*-\n", False, "Request", ""),
    (with_words_apart, "    ‸# a remark\n", False, "x = 1  ", ""),
    (with_words_apart, "x = ‸# a remark\n", False, "1  ", "1  "),
    # the line above
    (without_the_line_above, "a = b()\n‸\n", False, "a = b()", ""),
    (without_the_line_above, "if a:\n\n    if‸\n", False, " a:", ""),
    (without_the_line_above, "a = b()\n‸\n", True, "a = b()\nc = 1", ""),
    (
        without_the_line_above,
        "def f():\n    ‸\n",
        True,
        "a()\n    bc()\n    bc()\n    d()",
        "a()\n    bc()",
    ),
    (without_the_line_above, "a = b()\na = ‸()\n", False, "b", ""),
    (without_the_line_above, "a = b()\n‸\n", False, "a = b() + 1", SAME),
    (without_the_line_above, "a(\n    b,\n    c\n)\n‸\n", False, ")", SAME),
    # what the editor indented already, and what leaves the block
    (at_the_indentation, "def f():\n    ‸\n", True, "    a()\n    b()", "a()\n    b()"),
    (at_the_indentation, "def f():\n    ‸\n", True, "    a()\n        b()", "a()\n    b()"),
    (at_the_indentation, "def f():\n\t‸\n", True, "\ta:\n\t\t\tb()\n", "a:\n\t\tb()\n"),
    (at_the_indentation, "def f():\n‸\n", True, "    a()", "    a()"),
    (at_the_indentation, "    if a:\n    ‸\n", True, "    b()", "    b()"),
    (at_the_indentation, "f(a,\n  ‸\n", False, "  b)", "  b)"),
    (within_the_blocks, "def f():\n    ‸\n", True, "a()\n + b", "a()"),
    (within_the_blocks, "def f():\n    ‸\n", True, "a()\n\n\ndef g():\n    b()", SAME),
    (within_the_blocks, "def f():\n    ‸\n", True, "a()\n    b()", SAME),
    (within_the_blocks, "if a:\n    if b:\n        ‸\n", True, "c()\n    d()", SAME),
    (within_the_blocks, "if a:\n    ‸\n", True, "b()\nelse:\n    c()", SAME),
    (within_the_blocks, "def f():\n    ‸\n", True, 'a("""\n b""")', SAME),
    (within_the_blocks, "def f():\n    ‸\n", True, "a(\n  b,\n  )", SAME),
    # imports
    (without_second_import, "import os\n‸\n", False, "import os", ""),
    (without_second_import, "im‸\nimport os\n", False, "port os", ""),
    (without_second_import, "def f():\n    import a\ndef g():\n    ‸\n", False, "import a", SAME),
    (without_second_import, "import os\n‸\n", False, "import os.path", "import os.path"),
    (without_second_import, "a()\n‸\n", False, "a()", "a()"),
    # behind what leaves the block
    (where_it_is_run, "def f():\n    return 1\n    ‸\n", False, "return 1", ""),
    (where_it_is_run, "def f():\n    raise E(\n        x\n    )\n\n    ‸\n", False, "y", ""),
    (where_it_is_run, "for a in b:\n    if a:\n        break\n        ‸\n", False, "c()", ""),
    (where_it_is_run, "for a in b:\n    if a:\n        break\n    ‸\n", False, "c()", "c()"),
    (where_it_is_run, "def f():\n    return 1\n‸\n", False, "x = 1", "x = 1"),
    (where_it_is_run, "def f():\n    return 1\n    ‸\n", False, "# a", "# a"),
    (where_it_is_run, "def f():\n    return 1\n    re‸\n", False, "turn", "turn"),
    (where_it_is_run, '"""\nraise x\n‸\n"""\n', False, "or y", "or y"),
    (where_it_is_run, "def f():\n    return [\n    ‸\n", False, "x", "x"),
    # a closer that the editor has put there already
    (without_repeated_rest, "f(‸)\n", False, "a)", "a"),
    (without_repeated_rest, "f(‸)\n", False, "a", "a"),
    (without_repeated_rest, "f(g(‸)\n", False, "a)", "a)"),
    (without_repeated_rest, "f([‸])\n", False, "a])", "a"),
    (without_repeated_rest, "f([‸])\n", False, "a]", "a"),
    (without_repeated_rest, 'x = "‸"\n', False, 'a"', "a"),
    (without_repeated_rest, "if ‸:\n", False, "a:", "a"),
    (without_repeated_rest, "d[‸] = 1\n", False, "k] = 1", "k"),
    (without_repeated_rest, "d = {‸}\n", False, "'a': 1}", "'a': 1"),
    # inside a word
    (without_repeated_rest, "self.na‸me = 1\n", False, "me = 1", ""),
    (without_repeated_rest, "return foo‸bar(x)\n", False, "_bar(x)", "_"),
    (without_repeated_rest, "x = ‸beta\n", False, "a + beta", "a + "),
    # a letter in common is no repetition
    (without_repeated_rest, "x = ‸ else 1\n", False, "a if e", "a if e"),
    (without_repeated_rest, "f(‸, beta)\n", False, "a, beta", "a"),
    # the next lines
    (without_repeated_lines, "x = 1\n‸\nreturn x\n", False, "return x", ""),
    (
        without_repeated_lines,
        "def f():\n    ‸\n    return x\n",
        True,
        "y = 1\n    return x",
        "y = 1",
    ),
    (without_repeated_lines, "a\n‸\nb = 2\nc = 3\n", True, "a = 1\nb = 2\nc = 3", "a = 1"),
    (without_repeated_lines, "a\n‸\nb = 2\n", True, "b = 3", "b = 3"),
    (without_repeated_lines, "    re‸\n    return x\n", False, "turn x", ""),
    (without_repeated_lines, "if (a) {\n  ‸\n}\n", True, "b();\n}", "b();"),
    (
        without_repeated_lines,
        "if (a) {\n  ‸\n}\n",
        True,
        "if (b) {\n  c();\n  }",
        "if (b) {\n  c();\n  }",
    ),
    (without_repeated_lines, "x = ‸ + 1\ny\n", False, "y", "y"),
    # brackets
    (with_balanced_brackets, "f(‸\n", False, "a)", "a)"),
    (with_balanced_brackets, "x = ‸\n", False, "a)", "a"),
    (with_balanced_brackets, "x = ‸\n", False, "f(a))", "f(a)"),
    # one line leaves no call open that nothing closes
    (with_balanced_brackets, "x = ‸\n", False, "f(", "f"),
    (with_balanced_brackets, "x = ‸\n", False, "f(a,", "f"),
    (with_balanced_brackets, "x = ‸\n", False, "{", ""),
    (with_balanced_brackets, "x = ‸\n    a,\n)\n", False, "f(", SAME),
    (with_balanced_brackets, "x = ‸)\n", False, "f(", SAME),
    (with_balanced_brackets, "x = f(\n    ‸\n)\n", False, "a,", SAME),
    (with_balanced_brackets, "x = ‸\n", True, "f(", SAME),
    (with_balanced_brackets, "x = ‸\n", True, "f(a,", SAME),
    (with_balanced_brackets, "x = ‸\n", False, "f(a, b", "f"),
    (with_balanced_brackets, "x = ‸\n)\n", False, "f(a", "f(a"),
    (with_balanced_brackets, "x = ‸\n", False, "')'", "')'"),
    (with_balanced_brackets, "x = ‸\n", False, "1  # :)", "1  # :)"),
    (with_balanced_brackets, "x = [‸\n", False, "a)", "a"),
    # a closer too many is not made good by one that was missing
    (with_balanced_brackets, "class Odd(E‸\n", False, "rror):):", "rror):"),
    (with_balanced_brackets, "f(g(‸\n", False, "a)]", "a)"),
    (with_line_endings, "a\r\n‸", True, "b\nc", "b\r\nc"),
    (with_line_endings, "a\n‸", True, "b\nc", "b\nc"),
]


@pytest.mark.parametrize(("apply", "cursor", "several", "proposed", "left"), TABLE)
def test_a_filter_leaves(
    apply: Filter, cursor: str, several: bool, proposed: str, left: str
) -> None:
    expected = proposed if left is SAME else left
    assert apply(proposed, place(cursor, multi_line=several)) == expected


REASONS = [
    ("x = ‸\n", "\ny", "The model proposed nothing for this line."),
    ("x = ‸\n", "  ", "The model proposed only white space."),
    ("f(‸)\n", ")", "What follows the cursor already says this."),
    ("f(‸doc=1)\n", "doc", "The proposal would run into what follows the cursor."),
    ("a = 1\n‸\nb = 2\n", "b = 2", "The next lines already say this."),
    ("x = ‸\n", ")", "The proposal would have left a bracket without its partner."),
]


@pytest.mark.parametrize(("cursor", "proposed", "reason"), REASONS)
def test_silence_has_a_reason(cursor: str, proposed: str, reason: str) -> None:
    suggestion = suggestion_of(proposed, place(cursor))
    assert (suggestion.text, suggestion.reason) == ("", reason)


def test_a_good_suggestion_passes_untouched() -> None:
    suggestion = suggestion_of("a + b", place("def f(a, b):\n    return ‸\n"))
    assert (suggestion.text, suggestion.reason) == ("a + b", "")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_suffix_matches_across_line_endings(newline: str) -> None:
    cursor = "if (a) {‸    }".replace("‸", f"{newline}  ‸{newline}")
    suggestion = suggestion_of("b();\nc();\n}", place(cursor, multi_line=True, language="java"))
    assert suggestion.text == f"b();{newline}c();"


CODE = st.text(st.sampled_from("ab([{}]) ,\n'"), max_size=14)


@given(CODE, CODE, CODE, st.booleans())
def test_brackets_are_never_worse_than_before_unless_a_block_goes_on(
    before: str, after: str, proposed: str, several: bool
) -> None:
    where = place(f"{before}‸{after}", multi_line=several)
    text = suggestion_of(proposed, where).text
    if not (several and text.endswith(("(", "[", "{", ","))):
        assert where.faults_with(text) <= where.faults_with("")


@given(CODE, CODE, CODE)
def test_filters_only_take_away(before: str, after: str, proposed: str) -> None:
    text = suggestion_of(proposed, place(f"{before}‸{after}", multi_line=True)).text
    assert proposed.startswith(text)


@pytest.mark.parametrize(
    ("text", "language", "faults"),
    [
        ("f(a[0])", "python", (0, 0)),
        ("f(]", "python", (1, 1)),
        (")(", "python", (1, 1)),
        ("# (\n", "python", (0, 0)),
        ("// (\n", "java", (0, 0)),
        ("a // (b)", "python", (0, 0)),
        ("'(\\'('", "python", (0, 0)),
        ("don't (\n)", "markdown", (0, 0)),
    ],
)
def test_brackets_in_strings_and_comments_do_not_count(
    text: str, language: str, faults: tuple[int, int]
) -> None:
    assert balance_of(text, language) == faults


_CODE = st.text("()[]{}\"'`#\\\n ab/-<!", max_size=14)


@given(_CODE, _CODE, _CODE, st.sampled_from(["python", "html", "javascript", "lua"]))
def test_brackets_around_a_text_are_counted_as_those_of_the_whole(
    before: str, text: str, after: str, language: str
) -> None:
    whole = balance_of(before + text + after, language)
    assert Balances(before, after, language).with_text(text) == whole


def test_every_filter_gives_its_reason() -> None:
    assert all(reason.endswith(".") for _, reason in FILTERS[:-1])
