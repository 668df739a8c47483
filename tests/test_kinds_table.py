"""tests/README.md names tests that exist, for every kind of fault."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE / "README.md").read_text()
ROWS = dict(re.findall(r"^\| ([A-Z]) \|(.*)$", PAGE, re.MULTILINE))


def test_every_kind_has_its_row_and_a_test() -> None:
    assert list(ROWS) == list(string.ascii_uppercase[: string.ascii_uppercase.index("Q") + 1])
    assert all("`test_" in row for row in ROWS.values())


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(test_\w+\.py(?:::\w+)?)`", PAGE))))
def test_a_test_that_is_named_exists(named: str) -> None:
    file, _, test = named.partition("::")
    assert f"def {test}" in (HERE / file).read_text()


@pytest.mark.parametrize("file", sorted(path.name for path in HERE.glob("test_kind_*.py")))
def test_a_file_of_a_kind_stands_in_its_row(file: str) -> None:
    letter = file.removeprefix("test_kind_")[0].upper()
    assert f"`{file}`" in ROWS[letter]
