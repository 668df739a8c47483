"""What is used around a cursor is told quickly, from any text."""

from __future__ import annotations

import re
import time

import pytest
from dg_lsp.context import around as module
from dg_lsp.context.around import NEAR_LINES, around
from dg_lsp.context.library import words_in
from dg_lsp.context.outline import outline_of
from dg_lsp.lines import Lines
from hypothesis import given
from hypothesis import strategies as st

HEADS = [
    ("python", "from a import (\n    B,\n    C\n)\n", ["B", "C"]),
    ("python", "from a import B, \\\n    C\nx = 1\n", ["B", "C"]),
    ("python", '"""Doc."""\n\nimport os.path\n', ["os.path"]),
    ("typescript", "import {\n  B,\n  C as D\n} from './a';\n", ["B", "D"]),
    ("go", 'package p\n\nimport (\n\t"fmt"\n\tu "a/b"\n)\n', ["fmt", "u"]),
    ("rust", "use a::{\n    B,\n    C\n};\n", ["B", "C"]),
    ("c", '#include "a.h"\nint x;\n', [""]),
    ("java", "package p;\n\nimport a.B;\n\nclass C {}\n", ["B"]),
    ("ruby", "require 'a'\n", [""]),
    ("python", "x = 1\n", []),
]


@pytest.mark.parametrize(("language", "head", "names"), HEADS)
def test_the_imports_of_a_file_are_those_of_its_head(
    language: str, head: str, names: list[str]
) -> None:
    found = around(Lines.of(head + "x\n" * 60), 40, language).imports
    assert sorted({bound for i in found for bound, _ in i.names}) == sorted(names)


def test_to_import_is_not_to_use() -> None:
    near = around(Lines.of("from a import used, unused\n\nx = used(other.name)\n"), 2, "python")
    assert {"used", "other", "name"} <= near.words
    assert "unused" not in near.words
    assert near.dotted == {("other", "name")}


def test_the_class_counts_only_out_of_sight() -> None:
    head = "@dec\nclass Far(Base):\n"
    text = head + "    def f(self):\n        pass\n" * NEAR_LINES
    last = text.count("\n") - 1
    far = around(Lines.of(text), last, "python")
    assert far.class_name == "Far"
    assert "Base" in far.words
    assert around(Lines.of(text), 4, "python").class_name == ""
    assert around(Lines.of(text + "x = 1\n" * 40), last + 39, "python").class_name == ""


@pytest.mark.parametrize("text", ["a" * 1_000_000, "a." * 500_000, "a(" * 500_000, " " * 1_000_000])
def test_a_huge_line_costs_little(text: str) -> None:
    lines = Lines.of(f"{text}\n" * 3)
    started = time.thread_time()
    around(lines, 1, "python")
    assert time.thread_time() - started < 0.1


def test_deeply_nested_code_has_an_outline() -> None:
    nested = "".join("    " * n + "if x:\n" for n in range(300)) + "    " * 300 + "import a\n"
    found = outline_of(nested + "def f(): pass\n", "python")
    assert [definition.name for definition in found.definitions] == ["f"]


@given(st.text(st.sampled_from("ab.(){}\"'\n \timportclass:"), max_size=200), st.integers(0, 20))
def test_any_text_tells_something(text: str, line: int) -> None:
    lines = Lines.of(text)
    near = around(lines, min(line, lines.count - 1), "python")
    assert near.close <= near.words


@given(st.lists(st.text(st.sampled_from("ab_.:( 1é"), max_size=12), max_size=8))
def test_names_with_a_dot_are_those_of_the_whole_text(lines: list[str]) -> None:
    found = module._names_in(tuple(lines))
    text = "\n".join(lines)
    plain = re.findall(r"(?<![\w.])([A-Za-z_]\w*(?:\.\w+)*)(?:\.|::)([A-Za-z_]\w*)", text)
    assert found == (words_in(text), frozenset(plain))


def test_typing_below_the_imports_parses_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    module._imports.cache_clear()
    monkeypatch.setattr(module, "imports_of", lambda head, language: read.append(head) or ())
    for typed in ("", "a", "ab", "ab\n"):
        around(Lines.of(f"import a\n\nx = 1\n{typed}"), 3, "python")
    assert read == ["import a\n"]
