"""Cuts that pass a line's end, come in pairs, or take nothing away.

`lines` are two to five whole lines of code, `span` runs from a character to another one, also
across lines, `two` are two gaps of one line each within a canvas's reach, and `quiet` are places
of a finished program where nothing is missing.
"""

import io
import itertools
import random
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tokenizers import Tokenizer

LINE_COUNTS = range(2, 6)
SPAN_CHARACTERS = range(4, 64)  # 1 to 60 beyond a minimum of 3
GAP_TOKENS = range(2, 25)
BLOCK_TOKENS = range(2, 97)
BETWEEN_TOKENS = range(1, 65)
_MEANING_CHARACTERS = 2  # of every gap, blanks not counted
_PAIR_LINES = 8
_TRIES = 400  # without a cut, before a package counts as exhausted
QUIET_SORTS = ("statement", "header", "docstring", "comment", "end")


@dataclass(frozen=True)
class HeldOutFile:
    """A held-out file: its lines, and the indices of those that hold code alone."""

    path: str
    lines: list[str]
    code: list[int]

    @property
    def text(self) -> str:
        """The whole file."""
        return "\n".join(self.lines)

    def offset(self, line: int, column: int) -> int:
        """Characters before a column of a line, both from 0."""
        return sum(len(text) + 1 for text in self.lines[:line]) + column


@dataclass(frozen=True)
class Cut:
    """Where gaps lie in a program: start and end of each, in characters."""

    sort: str
    gaps: tuple[tuple[int, int], ...]


def cut_lines(file: HeldOutFile, generator: random.Random, tokenizer: Tokenizer) -> Cut | None:
    """Two to five lines of code in a row, the first one's indentation left."""
    first = generator.choice(file.code)
    last = first + generator.choice(LINE_COUNTS) - 1
    if not _is_code(file, first, last):
        return None
    start = file.offset(first, _indentation(file.lines[first]))
    end = file.offset(last, len(file.lines[last]))
    return _cut(file, "lines", tokenizer, BLOCK_TOKENS, (start, end))


def cut_span(file: HeldOutFile, generator: random.Random, tokenizer: Tokenizer) -> Cut | None:
    """From a random character of the code to another one."""
    first = generator.choice(file.code)
    line = file.lines[first]
    start = file.offset(first, generator.randrange(_indentation(line), len(line)))
    end = start + generator.choice(SPAN_CHARACTERS)
    last = file.text.count("\n", 0, end)
    if not _is_code(file, first, last):
        return None
    return _cut(file, "span", tokenizer, BLOCK_TOKENS, (start, end))


def cut_two(file: HeldOutFile, generator: random.Random, tokenizer: Tokenizer) -> Cut | None:
    """Two lines, or the rests of two lines, with at most a canvas between them."""
    first = generator.choice(file.code)
    second = first + generator.randint(1, _PAIR_LINES)
    if not _is_code(file, second, second):
        return None
    gaps: list[tuple[int, int]] = []
    for index in (first, second):
        line = file.lines[index]
        column = _indentation(line)
        if generator.random() < 0.5:
            column = generator.randint(column, max(column, len(line) - _MEANING_CHARACTERS))
        gaps.append((file.offset(index, column), file.offset(index, len(line))))
    between = file.text[gaps[0][1] : gaps[1][0]]
    if len(tokenizer.encode(between).ids) not in BETWEEN_TOKENS:
        return None
    return _cut(file, "two", tokenizer, GAP_TOKENS, *gaps)


def cut_quiet(file: HeldOutFile, generator: random.Random, tokenizer: Tokenizer) -> Cut | None:
    """A cursor where nothing is missing, its sort chosen first."""
    del tokenizer  # nothing is taken away
    places = quiet_places(file.text)
    sort = generator.choice(QUIET_SORTS)
    if not places[sort]:
        return None
    place = generator.choice(places[sort])
    return Cut(sort, ((place, place),))


def quiet_places(text: str) -> dict[str, list[int]]:
    """Offsets in a program at which nothing is missing, by sort.

    `statement`: the end of a statement, another one below. `header`: before the colon that ends
    a line. `docstring`: the end of its text, or of a sentence inside it. `comment`: the end of
    one that has code below. `end`: behind the last line of the file.
    """
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found: dict[str, list[int]] = {sort: [] for sort in QUIET_SORTS}
    found["end"] = [len(text.rstrip()) + 1] if text.endswith("\n") else [len(text)]
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    at_statement_start = True
    for before, token in itertools.pairwise(tokens):
        end = starts[before.end[0] - 1] + before.end[1]
        following = lines[before.end[0]] if before.end[0] < len(lines) else ""
        goes_on = bool(following.strip())
        if token.type == tokenize.NEWLINE and before.type != tokenize.COMMENT and goes_on:
            if before.string == ":":
                found["header"].append(end - 1)
            elif not _is_docstring(before, at_statement_start):
                found["statement"].append(end)
        stands_alone = before.type == tokenize.COMMENT and before.line.lstrip().startswith("#")
        if stands_alone and goes_on and not following.lstrip().startswith("#"):
            found["comment"].append(end)
        if _is_docstring(before, at_statement_start) and token.type == tokenize.NEWLINE:
            found["docstring"] += _sentence_ends(before.string, end)
        if before.type not in {tokenize.COMMENT, tokenize.NL}:
            layout = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
            at_statement_start = before.type in layout
    return found


CUTS: dict[str, Callable[[HeldOutFile, random.Random, Tokenizer], Cut | None]] = {
    "lines": cut_lines,
    "span": cut_span,
    "two": cut_two,
    "quiet": cut_quiet,
}


def draw_cuts(
    tokenizer: Tokenizer, package: str, files: list[HeldOutFile], kind: str, seed: int
) -> Iterator[tuple[HeldOutFile, Cut]]:
    """Cuts of one kind through one package, files equally likely, no character cut twice."""
    generator = random.Random(f"{seed}:{package}:{kind}")
    cuttable = [file for file in files if file.code]
    used: dict[str, list[tuple[int, int]]] = {}
    failures = 0
    while cuttable and failures < _TRIES:
        file = generator.choice(cuttable)
        cut = CUTS[kind](file, generator, tokenizer)
        taken = used.setdefault(file.path, [])
        if cut is None or any(a <= end and start <= b for start, end in cut.gaps for a, b in taken):
            failures += 1
            continue
        taken.extend(cut.gaps)
        failures = 0
        yield file, cut


def _is_code(file: HeldOutFile, first: int, last: int) -> bool:
    code = set(file.code)
    return all(index in code for index in range(first, last + 1))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _cut(
    file: HeldOutFile, sort: str, tokenizer: Tokenizer, sizes: range, *gaps: tuple[int, int]
) -> Cut | None:
    for start, end in gaps:
        middle = file.text[start:end]
        if len("".join(middle.split())) < _MEANING_CHARACTERS:
            return None
        if len(tokenizer.encode(middle).ids) not in sizes:
            return None
    return Cut(sort, gaps)


def _is_docstring(token: tokenize.TokenInfo, at_statement_start: bool) -> bool:
    return token.type == tokenize.STRING and at_statement_start


def _sentence_ends(string: str, end: int) -> list[int]:
    """Offsets behind the text of a docstring, and behind lines inside it that end a sentence.

    `end` is where its token ends in the file.
    """
    quotes = 3 if string.endswith(('"""', "'''")) else 1
    start = end - len(string)
    body = string[: len(string) - quotes].rstrip()
    found = [start + len(body)]
    offset = 0
    for line in body.split("\n")[:-1]:
        offset += len(line) + 1
        if line.rstrip().endswith("."):
            found.append(start + offset - 1 - (len(line) - len(line.rstrip())))
    return found
