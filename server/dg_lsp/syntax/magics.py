"""What IPython takes in a cell beside Python, put out of the sight of a parser of Python.

Magics, shell commands and questions (https://ipython.readthedocs.io/en/stable/interactive/reference.html)
are read as a name and blanks: as many characters, the same line breaks, a statement like theirs.
"""

from __future__ import annotations

import re

_LINE = re.compile(
    r"^[ \t]*(?P<line>%{1,2}(?:[A-Za-z_].*)?|!.*|\?{1,2}[\w.]*|[A-Za-z_][\w.]*\?{1,2})[ \t]*$"
    r"|^[ \t]*[A-Za-z_][\w., \t\[\]'\"]*=[ \t]*(?P<value>%(?:[A-Za-z_].*)?|!.*)$",
    re.MULTILINE,
)
_GOES_ON = tuple("([{,\\+-*/%&|^=<>")
"""How a line ends behind which an operator may stand first."""
_TRIPLE = ('"""', "'''")


def as_python(text: str) -> str:
    """The text of a cell as a parser of Python may read it, as long as it is."""
    return _LINE.sub(_masked, text) if "%" in text or "!" in text or "?" in text else text


def _masked(found: re.Match[str]) -> str:
    whole = found[0]
    group = "line" if found["line"] is not None else "value"
    start = found.start(group) - found.start()
    inside = any(mark in whole for mark in _TRIPLE) or whole.count(")") > whole.count("(")
    if inside or (group == "line" and _is_rest(found)):
        return whole
    return whole[:start] + "x" + " " * (len(whole) - start - 1)


def _is_rest(found: re.Match[str]) -> bool:
    """Whether the line goes on with what the one above began: `%` is an operator there."""
    return found.string[: found.start()].rstrip().endswith(_GOES_ON)
