"""Places in files as editors print them, and the text they point into."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from dg_lsp.cli.errors import CliError

_POSITION = re.compile(r"(?P<path>.+):(?P<line>\d+):(?P<column>\d+)", re.DOTALL)
_LINES = re.compile(r"(?P<path>.+):(?P<first>\d+)(?:-(?P<last>\d+))?", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\n|\r")


class Position(NamedTuple):
    """A file and a cursor in it; line and column count from 1, columns in characters."""

    path: Path
    line: int
    column: int


class LineRange(NamedTuple):
    """A file and whole lines of it, both ends included, counted from 1."""

    path: Path
    first: int
    last: int


def parse_position(text: str) -> Position:
    """Read FILE:LINE:COL; raises CliError."""
    match = _POSITION.fullmatch(text)
    if match is None:
        raise CliError(f"{text!r} is not FILE:LINE:COL; write for example app.py:12:5.")
    return Position(Path(match["path"]), int(match["line"]), int(match["column"]))


def parse_lines(text: str) -> LineRange:
    """Read FILE:L1-L2, or FILE:L for one line; raises CliError."""
    match = _LINES.fullmatch(text)
    if match is None:
        raise CliError(f"{text!r} is not FILE:L1-L2; write for example app.py:12-15.")
    first = int(match["first"])
    return LineRange(Path(match["path"]), first, int(match["last"] or first))


def read_text(path: Path) -> str:
    """A source file's text with its line ends as they are; raises CliError."""
    if path.is_dir():
        raise CliError(f"{path} is a directory; name a file in it.")
    if path.exists() and not path.is_file():
        raise CliError(f"{path} is not a regular file; name a source file.")
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise CliError(f"{path} does not exist; check the path.") from None
    except OSError as error:
        raise CliError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError:  # a NUL in the path
        raise CliError(f"{str(path)!r} is not a path.") from None
    if b"\0" in raw:
        raise CliError(f"{path} is a binary file; dg-lsp reads UTF-8 text.")
    try:
        # A byte order mark is not a character that editors count.
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CliError(
            f"{path} is not UTF-8 (byte {error.start + 1}); save it as UTF-8 first."
        ) from None


def line_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each line without its line end; text that ends a line has one more."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _LINE_END.finditer(text):
        spans.append((start, match.start()))
        start = match.end()
    return [*spans, (start, len(text))]


def offset_of(text: str, position: Position) -> int:
    """Index into `text` of a cursor; raises CliError when it lies outside."""
    spans = line_spans(text)
    path, line, column = position
    if not 1 <= line <= len(spans):
        raise CliError(f"{path} has {len(spans)} lines, so line {line} is outside of it.")
    start, end = spans[line - 1]
    if not 1 <= column <= end - start + 1:
        raise CliError(
            f"Line {line} of {path} has columns 1 to {end - start + 1}, "
            f"so column {column} is outside of it."
        )
    return start + column - 1


def check_lines(text: str, lines: LineRange) -> None:
    """Raise CliError unless the lines exist, in this order."""
    path, first, last = lines
    count = len(line_spans(text))
    if text.endswith(("\n", "\r")) and count > 1:
        count -= 1  # the empty rest behind the last line end is no line that one can edit
    if not 1 <= first <= last <= count:
        raise CliError(f"{path} has lines 1 to {count}, so {first}-{last} is no range in it.")


def replace_lines(text: str, lines: LineRange, new: str) -> str:
    """Text with whole lines replaced; `new` comes without the last line's end."""
    spans = line_spans(text)
    start, end = spans[lines.first - 1][0], spans[lines.last - 1][1]
    return text[:start] + new + text[end:]
