"""Make the cases from wheels: `python -m bench.next_edit.record WHEELS`.

    pip download --no-deps --dest WHEELS werkzeug==2.3.8 httpx==0.23.3 networkx==2.8.8 ...

with every version that PACKAGES names. The packages are BSD-3-Clause and were held out of
dg-tiny's training.

`repeat` and `other` are real: lines that differ between two versions of a file. Lines whose tokens
changed in the same way are one group; the first of them is what the user does, the others are what
is left. Which line its author changed first is not known, so it is the first in the file. `rename`
and `trap` are made by bench.next_edit.renames.
"""

from __future__ import annotations

import argparse
import difflib
import random
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import msgspec
from dg_lsp.bench.next_edits import CASES, Case, LineChange
from dg_lsp.next_edit.tokens import swaps_in_line

from bench.next_edit.renames import renames_in, traps_in
from bench.replay.hunks import prose_lines
from bench.replay.record import read_wheel

LICENCE = "BSD-3-Clause"
SEED = 11
MAX_FILE = 20_000
"""Characters of a file: the cases together stay small."""
PACKAGES = {
    "werkzeug": ["2.3.8", "3.0.6", "3.1.3"],
    "httpx": ["0.23.3", "0.24.1", "0.25.2", "0.26.0", "0.27.2", "0.28.1"],
    "networkx": ["2.8.8", "3.1", "3.2.1", "3.3", "3.4.2", "3.5"],
}
COUNTS = {"repeat": 30, "other": 30, "rename": 30, "trap": 15}
MAX_REST = 6
"""Groups with more lines were changed by a program."""
MAX_PER_FILE = 2

Files = dict[str, str]
Signature = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


def edited_lines(old: str, new: str) -> list[LineChange]:
    """Lines that were edited in place, in the numbers of the old text."""
    before, after = old.splitlines(), new.splitlines()
    found: list[LineChange] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            pairs = zip(range(i1, i2), after[j1:j2], strict=True)
            found += [LineChange(line, text) for line, text in pairs]
    return found


def signature_of(was: str, now: str) -> Signature | None:
    """What became of a line's tokens; None when it is another line or only its blanks changed."""
    swaps = swaps_in_line(was, now)
    if not swaps:
        return None
    found = tuple((swap.removed, swap.added) for swap in swaps)
    said = "".join(token for pair in found for side in pair for token in side)
    return found if said.strip() else None


def is_code(lines: list[str], changes: list[LineChange], prose: set[int]) -> bool:
    """Whether no line is a comment or documentation."""
    return all(c.line not in prose and lines[c.line].strip() for c in changes)


def real_cases(package: str, old: str, new: str, was: Files, now: Files) -> list[Case]:
    """Groups and single changes between two versions of a package."""
    found: list[Case] = []
    for path in sorted(was.keys() & now.keys() - {""}):
        text = was[path]
        if text == now[path] or len(text) > MAX_FILE or not text.isascii() or "\r" in text:
            continue
        lines, prose = text.splitlines(), prose_lines(text)
        groups: dict[Signature, list[LineChange]] = defaultdict(list)
        every = edited_lines(text, now[path])
        for change in every:
            signature = signature_of(lines[change.line], change.new)
            if signature is not None and is_code(lines, [change], prose):
                groups[signature].append(change)
        for changes in groups.values():
            first, *rest = changes
            if len(rest) > MAX_REST:
                continue
            kind = "repeat" if rest else "other"
            source = f"{package} {old} to {new}"
            also = [change for change in every if change not in changes]
            found.append(Case("", kind, LICENCE, source, path, text, first, rest, also))
    return found


def choose(cases: list[Case], count: int, rng: random.Random) -> list[Case]:
    """Some of the cases: few of a file, none twice, and packages in turn."""
    found: list[Case] = []
    seen: set[tuple[str, str]] = set()
    files: dict[str, int] = defaultdict(int)
    by_package: dict[str, list[Case]] = defaultdict(list)
    for case in rng.sample(cases, len(cases)):
        by_package[case.path.partition("/")[0]].append(case)
    queues = [by_package[name] for name in sorted(by_package)]
    while len(found) < count and any(queues):
        for queue in queues:
            while queue and len(found) < count:
                case = queue.pop()
                key = (case.path, case.first.new.strip())
                if key in seen or files[case.path] >= MAX_PER_FILE:
                    continue
                seen.add(key)
                files[case.path] += 1
                found.append(case)
                break
    return found


def pools_of(cases: list[Case]) -> list[list[Case]]:
    """Traps of either sort apart, so that there are as many of each; others together."""
    notes = sorted({case.note for case in cases if case.kind == "trap"})
    return [[case for case in cases if case.note == note] for note in notes] or [cases]


def cases_in(wheels: Path) -> tuple[list[Case], list[str]]:
    """Every case that the wheels of a folder have, and the packages' licences."""
    found: list[Case] = []
    notices: list[str] = []
    for package, versions in PACKAGES.items():
        files = {version: read_wheel(wheels, package, version) for version in versions}
        for old, new in pairwise(versions):
            found += real_cases(package, old, new, files[old], files[new])
        newest = versions[-1]
        for path, text in sorted(files[newest].items()):
            if path and len(text) <= MAX_FILE and text.isascii() and "\r" not in text:
                source = f"{package} {newest}"
                found += [
                    Case("", m.kind, LICENCE, source, path, text, m.first, m.rest, note=m.note)
                    for m in [*renames_in(text), *traps_in(text)]
                ]
        notices += [f"## {package} {', '.join(versions)} ({LICENCE})", "", files[newest][""]]
    return found, notices


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder with every wheel")
    parser.add_argument("--out", type=Path, default=CASES)
    options = parser.parse_args()
    found, notices = cases_in(options.wheels)
    chosen: list[Case] = []
    for kind, count in COUNTS.items():
        pools = pools_of([case for case in found if case.kind == kind])
        shares = [(count + n) // len(pools) for n in range(len(pools))]
        some = [
            case
            for pool, share in zip(pools, shares, strict=True)
            for case in choose(pool, share, random.Random(SEED))
        ]
        print(f"{kind}: {len(some)} of {sum(map(len, pools))}")
        chosen += [
            msgspec.structs.replace(case, name=f"{kind}-{number:02d}")
            for number, case in enumerate(sorted(some, key=lambda c: (c.source, c.path)), 1)
        ]
    options.out.write_bytes(b"".join(msgspec.json.encode(case) + b"\n" for case in chosen))
    page = "\n".join(["# Where the texts come from", "", *notices])
    options.out.with_name("LICENCES.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
