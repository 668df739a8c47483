"""Cuts holes into held-out files: the questions that measure the model.

python -m training.holes --out .train --holes bench/quality/holes_v1.jsonl

A `line` hole is a whole line of code, its indentation left in the prefix. A `rest` hole
is the rest of a line from a random character on, often from the middle of a word.
"""

import argparse
import io
import json
import random
import shutil
import tokenize
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain, zip_longest
from pathlib import Path

from tokenizers import Tokenizer

from training.tokenizer import load_for_source

KINDS = ("line", "rest")
_PREFIX_CHARACTERS = 4_000
_SUFFIX_CHARACTERS = 1_500
_MINIMUM_PREFIX = 200
_MINIMUM_SUFFIX = 40
_MIDDLE_TOKENS = range(2, 25)
_MINIMUM_MIDDLE = 2  # characters, blanks not counted
_HOLES = 500
_DEVELOPMENT_HOLES = 200
_SEED = 22
_LAYOUT = frozenset(
    {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


@dataclass(frozen=True)
class Hole:
    """A gap in a file, with the text on both sides."""

    id: str
    prefix: str
    middle: str
    suffix: str
    path: str
    kind: str


@dataclass(frozen=True)
class HeldOutFile:
    """A file that training never saw, and the indices of its lines of code from 0."""

    path: str
    lines: list[str]
    code: list[int]


def code_lines(text: str) -> list[int]:
    """Indices of lines that hold code alone: no comment, docstring or part of a long string."""
    code: set[int] = set()
    other: set[int] = set()
    at_statement_start = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        first, last = token.start[0] - 1, token.end[0] - 1
        if token.type in _LAYOUT:
            at_statement_start |= token.type == tokenize.NEWLINE
            continue
        if token.type == tokenize.COMMENT:
            other.add(first)
            continue
        is_docstring = at_statement_start and token.type == tokenize.STRING
        if first != last or is_docstring:
            other.update(range(first, last + 1))
        else:
            code.add(first)
        at_statement_start = False
    return sorted(code - other)


def cut_hole(
    file: HeldOutFile, index: int, kind: str, generator: random.Random, identity: str
) -> Hole | None:
    """Takes one line, or the rest of it, out of a file; None when too little text is left."""
    line = file.lines[index]
    indentation = len(line) - len(line.lstrip())
    column = indentation
    if kind == "rest":
        last = len(line) - _MINIMUM_MIDDLE
        if last <= indentation:
            return None
        column = generator.randint(indentation + 1, last)
    prefix = "\n".join([*file.lines[:index], line[:column]])
    suffix = "\n".join(["", *file.lines[index + 1 :]])
    middle = line[column:]
    too_short = (
        len(prefix) < _MINIMUM_PREFIX
        or len(suffix) < _MINIMUM_SUFFIX
        or len("".join(middle.split())) < _MINIMUM_MIDDLE
    )
    if too_short:
        return None
    suffix = suffix[:_SUFFIX_CHARACTERS]
    return Hole(identity, crop_prefix(prefix), middle, suffix, file.path, kind)


def crop_prefix(prefix: str) -> str:
    """The last characters of a prefix, from the beginning of a line."""
    if len(prefix) <= _PREFIX_CHARACTERS:
        return prefix
    cropped = prefix[-_PREFIX_CHARACTERS:]
    return cropped[cropped.index("\n") + 1 :] if "\n" in cropped else cropped


def draw(
    tokenizer: Tokenizer, package: str, files: list[HeldOutFile], kind: str, seed: int
) -> Iterator[Hole]:
    """Holes of one kind from one package, each on a line of its own, files equally likely."""
    generator = random.Random(f"{seed}:{package}:{kind}")
    left = {file.path: list(file.code) for file in files}
    for lines in left.values():
        generator.shuffle(lines)
    by_path = {file.path: file for file in files if file.code}
    number = 0
    while by_path:
        path = generator.choice(sorted(by_path))
        if not left[path]:
            del by_path[path]
            continue
        index = left[path].pop()
        # Even lines are for one kind and odd ones for the other, so no line serves twice.
        if index % len(KINDS) != KINDS.index(kind):
            continue
        identity = f"{package}-{kind}-{number:03d}"
        hole = cut_hole(by_path[path], index, kind, generator, identity)
        if hole and len(tokenizer.encode(hole.middle).ids) in _MIDDLE_TOKENS:
            number += 1
            yield hole


def _quotas(total: int, parts: int) -> list[int]:
    return [total // parts + (index < total % parts) for index in range(parts)]


def choose(
    tokenizer: Tokenizer, packages: dict[str, list[HeldOutFile]], seed: int = _SEED
) -> tuple[list[Hole], list[Hole]]:
    """The measuring set and the development set, on different lines, packages alternating."""
    measuring: list[list[Hole]] = []
    development: list[list[Hole]] = []
    for kind in KINDS:
        many = _quotas(_HOLES // len(KINDS), len(packages))
        few = _quotas(_DEVELOPMENT_HOLES // len(KINDS), len(packages))
        for package, count, extra in zip(sorted(packages), many, few, strict=True):
            stream = draw(tokenizer, package, packages[package], kind, seed)
            holes = [hole for _, hole in zip(range(count + extra), stream, strict=False)]
            measuring.append(holes[:count])
            development.append(holes[count:])
    return _alternate(measuring), _alternate(development)


def _alternate(groups: list[list[Hole]]) -> list[Hole]:
    return [hole for hole in chain.from_iterable(zip_longest(*groups)) if hole is not None]


def read_held_out(path: Path) -> dict[str, list[HeldOutFile]]:
    """The held-out files of each package."""
    packages: dict[str, list[HeldOutFile]] = {}
    with path.open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            text = record["text"]
            file = HeldOutFile(record["path"], text.split("\n"), code_lines(text))
            packages.setdefault(record["package"], []).append(file)
    return packages


def write(holes: list[Hole], path: Path) -> None:
    """One hole a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        for hole in holes:
            out.write(json.dumps(asdict(hole), ensure_ascii=False) + "\n")
    print(f"{path}: {len(holes)} holes, {path.stat().st_size / 2**20:.2f} MiB")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(".train"), help="has held_out.jsonl")
    parser.add_argument("--holes", type=Path, default=Path("bench/quality/holes_v1.jsonl"))
    arguments = parser.parse_args()
    tokenizer = load_for_source(arguments.out)
    measuring, development = choose(tokenizer, read_held_out(arguments.out / "held_out.jsonl"))
    write(measuring, arguments.holes)
    # The holes are excerpts: the licences of their packages travel with them.
    shutil.copy(
        arguments.out / "held_out_licences.txt", arguments.holes.with_suffix(".licences.txt")
    )
    write(development, arguments.out / "holes_dev.jsonl")


if __name__ == "__main__":
    main()
