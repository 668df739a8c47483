"""Cuts holes into held-out files: the questions that measure the model.

python -m training.holes --out .train --folder bench/quality

A `line` hole is a whole line of code, its indentation left in the prefix. A `rest` hole
is the rest of a line from a random character on, often from the middle of a word. The other
kinds are in training/cuts.py.
"""

import argparse
import io
import json
import random
import shutil
import tokenize
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path

from tokenizers import Tokenizer

from training.cuts import CUTS, Cut, HeldOutFile, draw_cuts
from training.tokenizer import load_for_source

KINDS = ("line", "rest")
_PREFIX_CHARACTERS = 4_000
_SUFFIX_CHARACTERS = 1_500
_MINIMUM_PREFIX = 200
_MINIMUM_SUFFIX = 40
_MIDDLE_TOKENS = range(2, 25)
_MINIMUM_MIDDLE = 2  # characters, blanks not counted
_HOLES = 500
_KEPT = {"lines": 250, "span": 250, "two": 250, "quiet": 350}
"""How many of each kind a checkout holds: 500 would pass two megabytes a file."""
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
class TwoHoles(Hole):
    """Two gaps: `between` stands behind the first and before the `second`, then `suffix`."""

    between: str
    second: str


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


def hole_of(file: HeldOutFile, cut: Cut, kind: str, identity: str) -> Hole | None:
    """A program with its gaps taken out; None when too little text is left around them."""
    text = file.text
    (start, end), *more = cut.gaps
    last = more[0][1] if more else end
    prefix, suffix = text[:start], text[last:]
    if len(prefix) < _MINIMUM_PREFIX or (len(suffix) < _MINIMUM_SUFFIX and cut.sort != "end"):
        return None
    around = (crop_prefix(prefix), text[start:end], suffix[:_SUFFIX_CHARACTERS], file.path)
    if not more:
        return Hole(identity, *around, kind)
    return TwoHoles(identity, *around, kind, text[end : more[0][0]], text[more[0][0] : last])


def draw_kind(
    tokenizer: Tokenizer, package: str, files: list[HeldOutFile], kind: str, seed: int
) -> Iterator[Hole]:
    """Holes of one of the kinds in training/cuts.py from one package."""
    number = 0
    for file, cut in draw_cuts(tokenizer, package, files, kind, seed):
        sort = kind if cut.sort == kind else f"{kind}-{cut.sort}"
        hole = hole_of(file, cut, kind, f"{package}-{sort}-{number:03d}")
        if hole:
            number += 1
            yield hole


def choose_kind(
    tokenizer: Tokenizer, packages: dict[str, list[HeldOutFile]], kind: str, seed: int = _SEED
) -> list[Hole]:
    """Holes of one of the kinds in training/cuts.py, packages alternating."""
    quotas = zip(sorted(packages), _quotas(_HOLES, len(packages)), strict=True)
    return _alternate(
        [
            list(islice(draw_kind(tokenizer, package, packages[package], kind, seed), count))
            for package, count in quotas
        ]
    )


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
    parser.add_argument("--folder", type=Path, default=Path("bench/quality"))
    arguments = parser.parse_args()
    out: Path = arguments.out
    folder: Path = arguments.folder
    tokenizer = load_for_source(out)
    packages = read_held_out(out / "held_out.jsonl")
    measuring, development = choose(tokenizer, packages)
    write(development, out / "holes_dev.jsonl")
    kept = {"holes": measuring}
    for kind in CUTS:
        holes = choose_kind(tokenizer, packages, kind)
        write(holes, out / f"{kind}_v1.jsonl")
        kept[kind] = holes[: _KEPT[kind]]
    for name, holes in kept.items():
        write(holes, folder / f"{name}_v1.jsonl")
        # The holes are excerpts: the licences of their packages travel with them.
        shutil.copy(out / "held_out_licences.txt", folder / f"{name}_v1.licences.txt")


if __name__ == "__main__":
    main()
