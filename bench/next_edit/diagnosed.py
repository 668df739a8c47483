"""Next edits by what another server says is wrong: `python -m bench.next_edit.diagnosed`.

Every case is played as if it were in a language whose scopes nobody here knows, with and without
the diagnostics of `ruff check --select F` (pyflakes' rules: unknown names, and what is unused) for
each version, and once more as Python. The model is not asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from dg_lsp.bench.machine import machine
from dg_lsp.bench.next_edit import Outcome, by_text, play
from dg_lsp.bench.next_edit_report import figures, markdown
from dg_lsp.bench.next_edits import Case, read_cases
from dg_lsp.documents import Document
from dg_lsp.next_edit.desk import NextEdits
from dg_lsp.next_edit.diagnostics import Diagnostic

from bench.next_edit.record import cases_in
from bench.next_edit.wide import drawn
from bench.next_edit.wide import told as said

NO_SCOPES = "plaintext"


def ruff(text: str) -> list[Diagnostic]:
    """What ruff says is wrong within single lines of a file."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F"]
    command += ["--output-format", "json", "--stdin-filename", "case.py", "-"]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    found: list[dict[str, Any]] = json.loads(ran.stdout or "[]")
    return [
        Diagnostic(at["row"] - 1, at["column"] - 1, end["column"] - 1, one["message"])
        for one in found
        if (at := one["location"])["row"] == (end := one["end_location"])["row"]
    ]


def tell(desk: NextEdits, document: Document) -> None:
    """As an editor does that passes on all diagnostics of each version."""
    desk.diagnosed(document, ruff(document.lines.text()), whole=True)


async def measure(cases: list[Case]) -> dict[str, list[Outcome]]:
    """Every case in every way."""
    return {
        "silent": [await play(case, by_text, language=NO_SCOPES) for case in cases],
        "told": [await play(case, by_text, language=NO_SCOPES, told=tell) for case in cases],
        "told with scopes": [await play(case, by_text, told=tell) for case in cases],
    }


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheels", type=Path, nargs="?", help="draw cases from wheels, as wide does")
    parser.add_argument("--most", type=int, default=420, help="cases of each kind")
    options = parser.parse_args()
    cases = read_cases()
    if options.wheels:
        cases = drawn(cases_in(options.wheels)[0], options.most)
    ways = asyncio.run(measure(cases))
    note = f"{len(cases)} cases, without a model; {machine()}."
    print(markdown({"note": note, "ways": figures(ways)}))
    for outcome, case in zip(ways["told"], cases, strict=True):
        if any(not shown.right for shown in outcome.shown):
            print(said(outcome, case))


if __name__ == "__main__":
    main()
