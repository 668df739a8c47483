"""Parsing that can be stopped, and lets go of what it read."""

from __future__ import annotations

import sys

import pytest
from dg_lsp.syntax.grammars import parser_of
from dg_lsp.syntax.parsing import CHUNK_BYTES, parsed

from tests.traced_memory import kept_by

_PREPARE_PARSE = """
from dg_lsp.syntax.grammars import parser_of
from dg_lsp.syntax.parsing import CHUNK_BYTES, parsed
parser = parser_of("python")
text = b"x = 1\\n" * (int(sys.argv[1]) * CHUNK_BYTES // 6)
parsed(parser, text)
"""
_PARSE = """
for _ in range(10):
    parsed(parser, text)
"""


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_text_that_was_parsed_is_let_go(pieces: int) -> None:
    parser = parser_of("python")
    assert parser is not None
    text = bytes(bytearray(b"x = 1\n" * (pieces * CHUNK_BYTES // 6)))
    before = sys.getrefcount(text)
    for _ in range(10):
        parsed(parser, text)
    assert sys.getrefcount(text) == before
    # Slices are objects of their own, so their memory is counted.
    assert kept_by(_PARSE, str(pieces), prepare=_PREPARE_PARSE) < CHUNK_BYTES


def test_parsing_stops_when_it_is_told_to() -> None:
    parser = parser_of("python")
    assert parser is not None
    with pytest.raises(ValueError):  # noqa: PT011 - the library's own
        parsed(parser, b"((((((" * 50_000, is_late=lambda offset, has_error: True)
    parser.reset()
    assert parsed(parser, b"x = 1\n").root_node.child_count == 1
