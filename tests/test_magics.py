"""What IPython takes beside Python does not make the rest of a cell look broken."""

from __future__ import annotations

import pytest
from dg_lsp.suggestion import Place, suggestion_of
from dg_lsp.syntax.magics import as_python
from dg_lsp.syntax.window import window_of
from hypothesis import given
from hypothesis import strategies as st

from tests.cursors import at_cursor


def suggested(marked: str, answer: str, path: str = "study.ipynb") -> str:
    """What is left of an answer of one line."""
    return suggestion_of(answer, Place(at_cursor(marked, path=path), multi_line=False)).text


MAGICS = [
    "%matplotlib inline",
    "%time x = f(a)",
    "%%time",
    "%%capture out --no-stderr",
    "%",
    "!pip install -q 'numpy>=1.2' x==3",
    "!!ls | grep (",
    "! echo {name",
    "?print",
    "print?",
    "df.head??",
    "files = !ls *.csv",
    "a, b = %timeit -o f(x)",
    "    %timeit f(x)",
]
PYTHON = [
    "x = a % b",
    "x != y",
    "x = (a\n     % b)",
    "x = (a\n     %b)",
    "total = a + \\\n    %b",
    'text = """\n%s items"""',
    'x = "%s" % y',
    "assert x != !y",
    "ok = 'really?'",
]


@pytest.mark.parametrize("line", MAGICS)
def test_a_magic_is_a_statement_as_long_as_it_is(line: str) -> None:
    cell = f"import os\nif os:\n    pass\n{line}\nx = 1\n"
    shown = as_python(cell)
    assert len(shown) == len(cell)
    assert shown.split("\n")[3].split()[-1] == "x"
    assert [*shown.split("\n")[:3], line, *shown.split("\n")[4:]] == cell.split("\n")
    for marked, path in ((f"{cell}‸", "study.ipynb"), (f"‸{cell}", "study.ipynb")):
        window = window_of(at_cursor(marked, path=path))
        assert window is not None
        assert window.faults == 0


@pytest.mark.parametrize("text", PYTHON)
def test_what_is_python_stays(text: str) -> None:
    assert as_python(text) == text


@given(st.text("%!? =ax\n('\\\"é", max_size=40))
def test_columns_and_lines_stay_whatever_stands_there(text: str) -> None:
    shown = as_python(text)
    assert [len(line) for line in shown.split("\n")] == [len(line) for line in text.split("\n")]


@pytest.mark.parametrize(
    ("marked", "answer"),
    [
        ("%matplotlib ‸\nx = 1\n", "inline"),
        ("!pip install ‸\n", "numpy pandas"),
        ("files = !ls ‸\n", "-l *.csv"),
        (
            "%load_ext autoreload\n%autoreload 2\n!ls | head -3 (\nvalue = ‸\nprint(value)\n",
            "1 + 2",
        ),
    ],
)
def test_a_suggestion_at_a_magic_and_below_it_is_kept_in_a_notebook(
    marked: str, answer: str
) -> None:
    assert suggested(marked, answer) == answer


def test_a_magic_in_a_file_of_python_is_a_fault_as_ever() -> None:
    assert suggested("x = 1\n‸\n", "!pip install numpy", "a.py") == ""
    assert suggested("x = 1\n‸\n", "!pip install numpy") == "!pip install numpy"


def test_what_breaks_the_python_between_magics_is_still_cut() -> None:
    assert suggested("%matplotlib inline\nx = ‸\n!ls\n", "f(1) = 2 = ]") == "f(1)"
