"""Where a docstring is missing, and how it is written there."""

from __future__ import annotations

import re

import msgspec

from dg_lsp.indentation import habit_around
from dg_lsp.lines import Lines, body_of
from dg_lsp.prompts.view import CursorView, newline_of, unix, view_at

LONGEST_HEADER = 40
"""Lines that a signature may take."""
_HEADER = re.compile(r"[ \t]*(?:async[ \t]+def|def|class)\b")
_STRING = re.compile(r"[ \t]*[rRuUbBfF]{0,2}[\"']")
_TOKEN = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*|[()\[\]{}:\n]")


class Gap(msgspec.Struct, frozen=True):
    """A definition without a docstring."""

    line: int
    """The signature's last line, from zero."""
    column: int
    """Its end."""
    indent: str
    quotes: str


def gap_at(lines: Lines, line: int, language: str) -> Gap | None:
    """The docstring that is missing in the Python definition whose signature holds `line`."""
    if language != "python":
        return None
    for start in range(line, max(line - LONGEST_HEADER, -1), -1):
        if _HEADER.match(lines[start]):
            return _gap_of(lines, start, line)
    return None


def view_of(lines: Lines, gap: Gap, path: str) -> CursorView:
    """The hole between the quotes: they, and the indentation, stand in what the model reads."""
    view = view_at(lines, gap.line, gap.column, path=path, language="python")
    return msgspec.structs.replace(
        view,
        before=f"{view.before}\n{gap.indent}{gap.quotes}",
        after=gap.quotes + view.after,
    )


def written(lines: Lines, gap: Gap, answer: str) -> str:
    """What to insert at the end of the signature; empty when `answer` says nothing."""
    text = unix(answer).partition(gap.quotes)[0].strip().rstrip("\\")
    if not text:
        return ""
    if "\n" in text:
        text += f"\n{gap.indent}"  # the closing quotes stand alone below several lines
    elif text.endswith(gap.quotes[0]):
        text += " "
    whole = f"\n{gap.indent}{gap.quotes}{text}{gap.quotes}"
    return whole.replace("\n", newline_of(lines))


def _gap_of(lines: Lines, start: int, line: int) -> Gap | None:
    end = _end_of_header(lines, start)
    if end is None or end < line:
        return None
    indent = _indent_of(lines[start])
    window = lines.between(start, end + 1 + LONGEST_HEADER)
    body = next((text for text in window[end - start + 1 :] if text.strip()), "")
    inside = _indent_of(body)
    if len(inside) <= len(indent) or not inside.startswith(indent):
        around = lines.between(start - LONGEST_HEADER, end + LONGEST_HEADER)
        inside = indent + habit_around("".join(around), "python").step
    elif _STRING.match(body):
        return None
    text = "".join(lines.between(start - 400, start + 400))
    quotes = "'''" if "'''" in text and '"""' not in text else '"""'
    return Gap(end, len(body_of(lines[end])), inside, quotes)


def _end_of_header(lines: Lines, start: int) -> int | None:
    """The line of the colon that ends a signature, None when more than a comment follows it."""
    text = unix("".join(lines.between(start, start + LONGEST_HEADER)))
    depth, line = 0, start
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n":
            line += 1
        elif token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == ":" and depth == 0:
            rest = text[match.end() :].partition("\n")[0].strip()
            return line if not rest or rest.startswith("#") else None
    return None


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
