"""The ways to fill a hole; they live in the package, for `dg-lsp bench quality` runs them too."""

from dg_lsp.bench.methods import (
    METHODS,
    Case,
    Hole,
    Method,
    case_of,
    changed,
    known_length,
    raced,
    with_line,
)

__all__ = [
    "METHODS",
    "Case",
    "Hole",
    "Method",
    "case_of",
    "changed",
    "known_length",
    "raced",
    "with_line",
]
