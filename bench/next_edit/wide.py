"""What is certain without the model, over far more cases: `python -m bench.next_edit.wide WHEELS`.

The wheels are those of bench.next_edit.record. Prints the same table, and every wrong proposal.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from pathlib import Path

import msgspec
from dg_lsp.bench.machine import machine
from dg_lsp.bench.next_edit import Outcome, by_text, play_all
from dg_lsp.bench.next_edit_report import figures, markdown
from dg_lsp.bench.next_edits import KINDS, Case

from bench.next_edit.record import cases_in

SEED = 5


def drawn(found: list[Case], most: int) -> list[Case]:
    """At most so many cases of each kind, with names of their own."""
    rng = random.Random(SEED)
    cases: list[Case] = []
    for kind in KINDS:
        pool = [case for case in found if case.kind == kind]
        some = rng.sample(pool, min(most, len(pool)))
        cases += [
            msgspec.structs.replace(case, name=f"{kind}-{number}")
            for number, case in enumerate(some)
        ]
    return cases


def told(outcome: Outcome, case: Case) -> str:
    """A wrong proposal, in one line."""
    was = case.text.splitlines()[case.first.line].strip()
    return f"- {case.source}, `{case.path}`: `{was}` became `{case.first.new.strip()}`"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder with every wheel")
    parser.add_argument("--most", type=int, default=420, help="cases of each kind")
    options = parser.parse_args()
    cases = drawn(cases_in(options.wheels)[0], options.most)
    outcomes = asyncio.run(play_all(cases, by_text))
    note = f"{len(cases)} cases, without a model; {machine()}."
    print(markdown({"note": note, "ways": figures({"text": outcomes})}))
    for outcome, case in zip(outcomes, cases, strict=True):
        if any(not shown.right for shown in outcome.shown):
            print(told(outcome, case))


if __name__ == "__main__":
    main()
