"""Quotes that one line leaves open, as far as the line alone shows."""

from __future__ import annotations

import re
from functools import cache

from dg_lsp.languages import comment_mark

_APOSTROPHES = frozenset(
    {"python", "javascript", "javascriptreact", "typescript", "typescriptreact", "ruby"}
)
"""Languages in which an apostrophe opens a string and does nothing else."""


@cache
def _tokens(language: str) -> re.Pattern[str]:
    comment = re.escape(comment_mark(language)) + r".*"
    single = r"|'(?:[^'\\]|\\.)*(?P<single>'?)" if language in _APOSTROPHES else ""
    return re.compile(rf"(?P<any>\"\"\"|'''|`)|{comment}|\"(?:[^\"\\]|\\.)*(?P<double>\"?){single}")


def leaves_quote_open(line: str, language: str) -> bool:
    """Whether a string that begins on a line should end on it and does not.

    What triple quotes and backticks open may end on any line.
    """
    for match in _tokens(language).finditer(line):
        groups = match.groupdict()
        if groups["any"]:
            return False
        if groups["double"] == "" or groups.get("single") == "":
            return True
    return False


def cut_where_quotes_close(before: str, text: str, after: str, language: str) -> str:
    """The longest start of `text`, ending before a quote, that leaves none open; or none.

    `text` is of one line; `before` and `after` are what stands on it already.
    """
    ends = [i for i, character in enumerate(text) if character in "\"'"]
    kept = (text[:end] for end in reversed(ends))
    return next((k for k in kept if not leaves_quote_open(before + k + after, language)), "")
