"""What the code around a cursor refers to, told from text alone: cheap enough for a keystroke."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, cast

import msgspec

from dg_lsp.context.imports import Import
from dg_lsp.context.library import words_in
from dg_lsp.context.outline import imports_of
from dg_lsp.lines import Lines
from dg_lsp.prompts.view import unix

NEAR_LINES = 24
"""Above and below the cursor: what is used there counts."""
CLOSE_LINES = 5
"""Above and below the cursor: what is used there counts first."""
HEAD_LINES = 160
"""Imports further down in a file do not count."""
_LINE_CHARS = 400
"""Of one line; longer ones are data."""
_MOST_LINES_UP = 3_000
_RUN_LINES = 64
_DEEPEST = _LINE_CHARS
"""Lines that are indented further are data."""
_REMEMBERED_RUNS = 128
_CLASS = re.compile(
    r"\s*(?:[\w@()]+\s+)*?(?:class|impl(?:<[^>]*>)?|interface|struct|trait|module)\s+"
    r"(?:\w+(?:<[^>]*>)?\s+for\s+)?([A-Za-z_]\w*)"
)
_IMPORT = re.compile(
    r"\s*(?:from|import|export|use|pub use|mod|pub mod|#\s*include|require\w*|\}\s*from)\b"
    r"|.*\brequire\s*\(|\s*[\w.]+\s+\"[\w./-]+\"$|\s*\"[\w./-]+\"$"
)
"""What may be the start or the end of an import, in any language."""
_DOTTED = re.compile(r"(?<![\w.])([A-Za-z_]\w*+(?:\.\w++)*)(?:\.|::)([A-Za-z_]\w*)")
"""No part of a name is tried again: nothing but the whole of it stands before a dot."""


class Around(msgspec.Struct, frozen=True):
    """What is used around a cursor."""

    imports: tuple[Import, ...]
    words: frozenset[str]
    """Names near the cursor and in the head of the class around it."""
    close: frozenset[str]
    """Names on the lines next to the cursor."""
    dotted: frozenset[tuple[str, str]]
    """What stands before a dot, and behind it."""
    class_name: str
    """Of the class around the cursor whose head is more than NEAR_LINES above it; or empty."""


class _Names(NamedTuple):
    """The names in some lines, and those with a dot between them."""

    words: frozenset[str]
    dotted: frozenset[tuple[str, str]]


def around(lines: Lines, line: int, language: str) -> Around:
    """What is used around a line."""
    imports = _imports(_head_of(lines), language)
    above, here, below = _code(lines, line, imports)
    class_line = _class_above(lines, line)
    head = lines[class_line] if class_line >= 0 else ""
    named = _CLASS.match(head)
    far = named is not None and class_line < line - NEAR_LINES
    # A key changes the cursor's line alone.
    typed, others = _names_in((here,)), _names_in((*above, *below, head))
    close = _names_in((*above[-CLOSE_LINES:], *below[:CLOSE_LINES]))
    return Around(
        imports=imports,
        words=others.words | typed.words,
        close=close.words | typed.words,
        dotted=others.dotted | typed.dotted,
        class_name=named[1] if named is not None and far else "",
    )


@lru_cache(16)
def _imports(head: str, language: str) -> tuple[Import, ...]:
    return imports_of(unix(head), language)


def _head_of(lines: Lines) -> str:
    """The start of a file up to its last import, so that typing below leaves it as it is."""
    note = lines.noted("head")
    if note is not None:
        return cast("str", note.value)
    last = min(HEAD_LINES, lines.count)
    head = _head(tuple(lines.between(0, last)))
    lines.note("head", 0, last, head)
    return head


@lru_cache(16)
def _head(first_lines: tuple[str, ...]) -> str:
    held = [line[:_LINE_CHARS] for line in first_lines]
    last = max((n for n, line in enumerate(held) if _IMPORT.match(line)), default=-1)
    while last >= 0 and last + 1 < len(held) and _goes_on(held[last], held[last + 1]):
        last += 1
    return "".join(held[: last + 1])


def _goes_on(line: str, following: str) -> bool:
    """Whether an import goes on on the next line."""
    return line.rstrip().endswith(("(", "{", ",", "\\")) or following.lstrip().startswith(
        (")", "}")
    )


@lru_cache(_REMEMBERED_RUNS)
def _names_in(lines: tuple[str, ...]) -> _Names:
    # Over line breaks no name goes on.
    dotted = "\n".join([line for line in lines if "." in line or "::" in line])
    return _Names(words_in("\n".join(lines)), frozenset(_DOTTED.findall(dotted)))


def _code(lines: Lines, line: int, imports: tuple[Import, ...]) -> tuple[list[str], str, list[str]]:
    """The lines above, at and below a line, without statements that import: to import is not to
    use."""
    first, last = max(line - NEAR_LINES, 0), line + NEAR_LINES + 1
    held = [text[:_LINE_CHARS] for text in lines.between(first, last)]
    for found in imports:
        for number in range(max(found.first, first), min(found.last + 1, first + len(held))):
            held[number - first] = ""
    return held[: line - first], held[line - first], held[line - first + 1 :]


def _class_above(lines: Lines, line: int) -> int:
    """The line of the head of the innermost class around a line, by indentation; -1 if none."""
    own = lines[line]
    code = own.lstrip()
    least = min(len(own) - len(code), _DEEPEST) if code else _DEEPEST
    last, end = line, max(line - _MOST_LINES_UP, 0)
    while last > end and least:
        # Runs begin at the same lines whatever is typed below, so that most are known.
        first = max((last - 1) // _RUN_LINES * _RUN_LINES, end)
        found, least = _class_in(tuple(lines.between(first, last)), least)
        if found >= 0:
            return first + found
        last = first
    return -1


@lru_cache(_REMEMBERED_RUNS)
def _class_in(lines: tuple[str, ...], least: int) -> tuple[int, int]:
    """The last line that begins a class and stands out from all below it, which are indented by
    `least` or more; -1 if none. And the indentation that is left."""
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        code = line.lstrip()
        indent = len(line) - len(code)
        if indent >= least or not code:
            continue
        if _CLASS.match(line[:_LINE_CHARS]):
            return number, least
        least = indent
        if not least:
            break
    return -1, least
