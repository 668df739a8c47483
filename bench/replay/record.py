"""Make the recorded sessions from two versions of packages: `python -m bench.replay.record`.

    pip download --no-deps --dest WHEELS werkzeug==3.0.6 httpx==0.27.2 networkx==3.4.2
    pip download --no-deps --dest WHEELS werkzeug==3.1.3 httpx==0.28.1 networkx==3.5
    python -m bench.replay.record WHEELS

The changes between the versions are real, and so is their order in the file; the hand that types
them is bench.replay.hand, seeded, so the same wheels give the same sessions. The three packages
are BSD-3-Clause and were held out of dg-tiny's training. A session's text is the older version of
one file; up to three neighbouring changes are typed into it.
"""

from __future__ import annotations

import argparse
import random
import zipfile
from pathlib import Path
from typing import NamedTuple

import msgspec
from dg_lsp.bench.sessions import Buffer, Session

from bench.replay.hand import Hand
from bench.replay.hunks import Hunk, hunks_between

OUT = Path(__file__).parent / "sessions"
LICENCE = "BSD-3-Clause"
SEED = 6
MAX_FILE = 32_000
"""Characters of a file: the sessions together stay small."""
KEYS = (25, 160)
"""How much is typed in a session."""
MAX_HUNKS = 3
MAX_PER_FILE = 2
CODE_SHARE = 0.6


class Pair(NamedTuple):
    """A package, the two versions and how many sessions are made from them."""

    package: str
    old: str
    new: str
    count: int


PAIRS = [
    Pair("werkzeug", "3.0.6", "3.1.3", 9),
    Pair("httpx", "0.27.2", "0.28.1", 7),
    Pair("networkx", "3.4.2", "3.5", 10),
]


def read_wheel(folder: Path, package: str, version: str) -> dict[str, str]:
    """The Python files of a wheel that are no tests, and its licence under ""."""
    (path,) = folder.glob(f"{package}-{version}-*.whl")
    found: dict[str, str] = {}
    with zipfile.ZipFile(path) as wheel:
        for name in sorted(wheel.namelist()):
            if name.endswith(".py") and "/tests/" not in name:
                found[name] = wheel.read(name).decode()
            elif ".dist-info/" in name and "LICENSE" in name:
                found[""] = wheel.read(name).decode()
    return found


def candidates(old: dict[str, str], new: dict[str, str]) -> list[tuple[str, list[Hunk]]]:
    """Runs of changes that make a session, each with the file that they are in."""
    found: list[tuple[str, list[Hunk]]] = []
    for path in sorted(old.keys() & new.keys() - {""}):
        if old[path] == new[path] or len(old[path]) > MAX_FILE or not old[path].isascii():
            continue
        run: list[Hunk] = []
        for hunk in hunks_between(old[path], new[path]):
            if hunk.code_share < CODE_SHARE or hunk.typed > KEYS[1]:
                continue
            run.append(hunk)
            typed = sum(h.typed for h in run)
            if typed > KEYS[1]:
                run = [hunk]
            if KEYS[0] <= sum(h.typed for h in run) and (
                len(run) == MAX_HUNKS or typed > KEYS[1] / 2
            ):
                found.append((path, run))
                run = []
        if run and sum(h.typed for h in run) >= KEYS[0]:
            found.append((path, run))
    return found


def choose(runs: list[tuple[str, list[Hunk]]], count: int) -> list[tuple[str, list[Hunk]]]:
    """Some of the runs, few from each file and no two that type the same."""
    found: list[tuple[str, list[Hunk]]] = []
    seen: set[str] = set()
    for path, hunks in random.Random(SEED).sample(runs, len(runs)):
        typed = "".join(change.text for hunk in hunks for change in hunk.changes)
        here = sum(path == other for other, _ in found)
        if len(found) < count and here < MAX_PER_FILE and typed not in seen:
            found.append((path, hunks))
            seen.add(typed)
    return found


def record(pair: Pair, path: str, text: str, hunks: list[Hunk], number: int) -> Session:
    """Type the changes into the file."""
    name = f"{pair.package}-{number:02d}"
    hand = Hand(text, random.Random(f"{SEED} {name}"))
    hand.make([change for hunk in hunks for change in hunk.changes])
    session = Session(
        name, LICENCE, f"{pair.package} {pair.old} to {pair.new}", path, text, hand.events
    )
    _check(session, hand.buffer.text, hunks)
    return session


def _check(session: Session, typed: str, hunks: list[Hunk]) -> None:
    """The keys lead exactly to the real change."""
    wanted = Buffer(session.text)
    for change in reversed([change for hunk in hunks for change in hunk.changes]):
        wanted.replace(change.start, change.end, change.text)
    if typed != wanted.text:
        raise AssertionError(f"{session.name}: the keys do not lead to the change")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder with the wheels of both versions")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    notices = ["# Where the texts come from", ""]
    for pair in PAIRS:
        old = read_wheel(options.wheels, pair.package, pair.old)
        new = read_wheel(options.wheels, pair.package, pair.new)
        runs = candidates(old, new)
        chosen = choose(runs, pair.count)
        for number, (path, hunks) in enumerate(sorted(chosen, key=lambda run: run[0]), 1):
            session = record(pair, path, old[path], hunks, number)
            data = msgspec.json.format(msgspec.json.encode(session), indent=0)
            (options.out / f"{session.name}.json").write_bytes(data + b"\n")
        print(f"{pair.package}: {len(chosen)} of {len(runs)} possible sessions")
        notices += [f"## {pair.package} {pair.old} and {pair.new} ({LICENCE})", "", old[""]]
    (options.out / "LICENCES.md").write_text("\n".join(notices), encoding="utf-8")


if __name__ == "__main__":
    main()
