"""Write bench/results/next_edit.md: `python -m bench.next_edit [RESULT.json] [--threads N]`.

Without a result of `dg-lsp bench next-edit --json` it is measured first, which takes minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from dg_lsp.bench.next_edit_report import markdown
from dg_lsp.bench.next_edits import CASES, read_cases

OUT = Path(__file__).resolve().parents[1] / "results" / "next_edit.md"
TEXT = Path(__file__).with_name("about.md")


def measured(threads: int | None) -> dict[str, Any]:
    """The result of the command."""
    command = [sys.executable, "-m", "dg_lsp.cli.main", "bench", "next-edit", "--json"]
    if threads:
        command += ["--threads", str(threads)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(ran.stdout)


def page(result: dict[str, Any]) -> str:
    """The whole page."""
    cases = {case.name: case for case in read_cases(CASES)}
    wrong = [
        f"| {one['way']} | {one['case']} | {one['origin']} | `{cases[one['case']].path}` |"
        for one in result["wrong"]
    ]
    table = ["| way | case | origin | file |", "|---|---|---|---|", *wrong]
    return "\n".join(
        [
            "# Next edits",
            "",
            TEXT.read_text().strip(),
            "",
            "## Measured",
            "",
            markdown(result),
            "## Every wrong proposal",
            "",
            *(table if wrong else ["There was none."]),
            "",
        ]
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("result", type=Path, nargs="?", help="what the command printed")
    parser.add_argument("--threads", type=int, help="processor threads of the engine")
    options = parser.parse_args()
    found = options.result
    result = json.loads(found.read_text()) if found else measured(options.threads)
    OUT.write_text(page(result), encoding="utf-8")


if __name__ == "__main__":
    main()
