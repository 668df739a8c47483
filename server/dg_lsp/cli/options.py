"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="Name or folder of a model; else $DG_LSP_MODEL, dg-tiny."),
]
MultiLine = Annotated[
    bool | None,
    typer.Option(
        "--multi-line/--single-line", help="Several lines or one; decided by the code if unset."
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads for the engine.")]
Deadline = Annotated[
    int | None, typer.Option(min=1, help="Answer with the best draft after this many ms.")
]
