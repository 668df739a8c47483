"""Text that training must never see: benchmarks, the standard library, held-out packages."""

import functools
import gzip
import json
import re
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from training.filters import normalise
from training.shingles import Hashes, contained, line_hashes, runs, share, shingles, union

# Benchmark solutions are short, so a shorter run of lines counts as a match.
_BENCHMARK_LINES = 3
_STANDARD_LIBRARY_SHARE = 0.05
_HELD_OUT_SHARE = 0.03
_DOCSTRING = re.compile(r'[ \t]*("""|\'\'\').*?\1[ \t]*\n', re.DOTALL)


def _nothing() -> Hashes:
    return np.empty(0, dtype=np.uint64)


@dataclass(frozen=True)
class Exclusions:
    """Sorted hashes of the text to stay away from.

    Attributes:
      benchmark: runs of three non-trivial lines; a single match excludes a file.
      standard_library: shingles; more than 5 % of a file's excludes it.
      held_out: shingles; more than 3 % of a file's excludes it.
    """

    benchmark: Hashes = field(default_factory=_nothing)
    standard_library: Hashes = field(default_factory=_nothing)
    held_out: Hashes = field(default_factory=_nothing)

    def reason(self, lines: Hashes) -> str:
        """Why a file with these line hashes must stay out, or nothing."""
        if contained(runs(lines, _BENCHMARK_LINES), self.benchmark).any():
            return "benchmark"
        whole = runs(lines)
        if share(whole, self.standard_library) > _STANDARD_LIBRARY_SHARE:
            return "standard library"
        if share(whole, self.held_out) > _HELD_OUT_SHARE:
            return "held-out package"
        return ""


def benchmark_programs(path: Path) -> Iterator[str]:
    """The whole programs of an infilling benchmark in gzipped JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            task = json.loads(line)
            yield task["prompt"] + task["canonical_solution"] + task.get("suffix", "")


def benchmark_runs(paths: Iterable[Path]) -> Hashes:
    """Runs of three lines in the programs, with their docstrings and without them."""
    programs = {program for path in paths for program in benchmark_programs(path)}
    bare = {_DOCSTRING.sub("", program) for program in programs}
    parts = (line_hashes(program) for program in sorted(programs | bare))
    return union(
        [runs(lines, _BENCHMARK_LINES) for lines in parts if lines.size >= _BENCHMARK_LINES]
    )


@functools.cache
def standard_library() -> Hashes:
    """Shingles of the running interpreter's standard library."""
    root = Path(sysconfig.get_path("stdlib"))
    parts: list[Hashes] = []
    for path in sorted(root.rglob("*.py")):
        if "site-packages" not in path.parts:
            text = path.read_bytes().decode("utf-8", "replace")
            parts.append(shingles(normalise(text)))
    return union(parts)
