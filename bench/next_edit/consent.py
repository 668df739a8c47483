"""What the model's consent is worth: `python -m bench.next_edit.consent WHEELS`.

Real cases that are not among the published ones, from the wheels of bench.next_edit.record. In each
the first line is looked at where the author's edit may be repeated and that a small model is asked
about; it is right or not, and the model agrees or not.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from pathlib import Path

import msgspec
from dg_lsp.bench.machine import machine
from dg_lsp.bench.next_edit import DEADLINE_MS
from dg_lsp.bench.next_edits import Case, read_cases
from dg_lsp.cli.session import open_session, usable_model
from dg_lsp.completion import Completer
from dg_lsp.documents import Document
from dg_lsp.lines import body_of
from dg_lsp.next_edit.desk import NextEdits
from dg_lsp.next_edit.finder import found_after
from dg_lsp.next_edit.guess import Place, agrees

from bench.next_edit.record import cases_in
from bench.next_edit.wide import drawn


async def judged(completer: Completer, case: Case) -> tuple[bool, bool] | None:
    """Whether the first likely line is right, and whether the model agrees; None without one."""
    desk = NextEdits()
    old = Document.of(f"file:///case/{case.path}", 1, "python", case.text)
    new = msgspec.structs.replace(old, lines=case.begun, version=2)
    desk.changed(old, new)
    edits = desk.history.of(new.uri)
    likely = found_after(new.lines, "python", edits).likely
    if not likely:
        return None
    place = Place(new.lines, likely[0], case.path, "python", edits[0])
    right = case.is_right(likely[0].line, body_of(likely[0].made(new.lines)))
    return right, await agrees(completer, place, DEADLINE_MS)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder with every wheel")
    parser.add_argument("--most", type=int, default=100, help="cases of each kind")
    parser.add_argument("--threads", type=int, help="processor threads of the engine")
    options = parser.parse_args()
    published = {(case.path, case.first.new.strip()) for case in read_cases()}
    found = [
        case
        for case in cases_in(options.wheels)[0]
        if case.kind in ("repeat", "other") and (case.path, case.first.new.strip()) not in published
    ]
    cases = drawn(found, options.most)

    async def run() -> Counter[tuple[str, bool, bool]]:
        counts: Counter[tuple[str, bool, bool]] = Counter()
        async with open_session(usable_model(None), threads=options.threads) as opened:
            for case in cases:
                if (found := await judged(opened.completer, case)) is not None:
                    counts[case.kind, *found] += 1
        return counts

    counts = asyncio.run(run())
    print(f"{len(cases)} cases; {machine()}.\n")
    print("| kind | line | the model agrees | it does not |\n|---|---|---|---|")
    for kind in ("repeat", "other"):
        for right in (True, False):
            what = "right" if right else "wrong"
            yes, no = counts[kind, right, True], counts[kind, right, False]
            print(f"| {kind} | {what} | {yes} | {no} |")


if __name__ == "__main__":
    main()
