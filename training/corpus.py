"""Collects permissively licensed Python source from folders of wheels.

python -m training.corpus WHEEL_FOLDER ... --out .train --exclude FILE.jsonl.gz ...

Writes corpus.jsonl and held_out.jsonl (one file a line: package, path, text), the
licences of the held-out packages, and the manifest that says what came from where.
"""

import argparse
import collections
import json
import random
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from training import wheels
from training.exclusions import Exclusions, benchmark_runs, standard_library
from training.filters import clean
from training.licences import is_permissive, licence_summary
from training.manifest import PackageUse, write_manifest
from training.shingles import Hashes, line_hashes, runs, union

HELD_OUT = ("httpx", "networkx", "werkzeug")
# Packages that are lists of names, places or test vectors rather than code.
_NO_CODE = frozenset({"faker", "holidays", "plotly", "pyopengl", "robot-descriptions", "tzdata"})
_DEFAULT_CAP = 12_000_000
# Characters. Large for wide and varied code, small where one pattern repeats.
_CAPS = {
    "transformers": 32_000_000,
    "torch": 32_000_000,
    "ray": 18_000_000,
    "sympy": 18_000_000,
    "tensorflow-cpu": 18_000_000,
    "anthropic": 1_500_000,
    "blosc2": 1_500_000,
    "botocore": 1_500_000,
    "elasticsearch": 2_000_000,
    "google-genai": 2_000_000,
    "langchain-community": 8_000_000,
    "music21": 6_000_000,
    "openai": 1_500_000,
    "pybullet": 1_000_000,
    "pyscf": 6_000_000,
    "yt-dlp": 3_000_000,
}
_DUPLICATE_SHARE = 0.5
_SEED = 20


class SourceFile(NamedTuple):
    """A cleaned file with the shingles of its text."""

    path: str
    text: str
    shingles: Hashes


class Harvest(NamedTuple):
    """What one wheel gives: its files, and how many were left out for which reason."""

    wheel: wheels.Wheel
    licence: str
    digest: str
    files: list[SourceFile]
    rejected: collections.Counter[str]


def harvest(wheel: wheels.Wheel, exclusions: Exclusions) -> Harvest:
    """Reads and filters the sources of one wheel; no files when the licence does not allow it."""
    rejected: collections.Counter[str] = collections.Counter()
    with zipfile.ZipFile(wheel.path) as archive:
        statements = wheels.licences(archive)
        if not is_permissive(statements):
            return Harvest(wheel, "", "", [], rejected)
        files: list[SourceFile] = []
        for path, raw in wheels.sources(archive):
            text, reason = clean(raw)
            if text is None:
                rejected[reason] += 1
                continue
            lines = line_hashes(text)
            reason = exclusions.reason(lines)
            if reason:
                rejected[reason] += 1
            else:
                files.append(SourceFile(path, text, runs(lines)))
    digest = wheels.sha256(wheel.path) if files else ""
    return Harvest(wheel, licence_summary(statements), digest, files, rejected)


def take(
    package: str, files: list[SourceFile], seen: set[int], rejected: collections.Counter[str]
) -> list[SourceFile]:
    """Chooses files of one package in random order, without near-duplicates, up to its cap.

    `seen` holds the shingles of everything taken so far, and grows.
    """
    order = sorted(files, key=lambda file: file.path)
    random.Random(f"{_SEED}:{package}").shuffle(order)
    taken: list[SourceFile] = []
    characters = 0
    for file in order:
        if characters >= _CAPS.get(package, _DEFAULT_CAP):
            rejected["cap"] += 1
            continue
        hashes = file.shingles.tolist()
        if not hashes or sum(map(seen.__contains__, hashes)) > _DUPLICATE_SHARE * len(hashes):
            rejected["near-duplicate"] += 1
            continue
        seen.update(hashes)
        taken.append(file)
        characters += len(file.text)
    return taken


_worker_exclusions = Exclusions()


def _start_worker(exclusions: Exclusions) -> None:
    global _worker_exclusions
    _worker_exclusions = exclusions


def _harvest_in_worker(wheel: wheels.Wheel) -> Harvest:
    return harvest(wheel, _worker_exclusions)


def _harvest_all(
    chosen: list[wheels.Wheel], exclusions: Exclusions, processes: int
) -> Iterator[Harvest]:
    with ProcessPoolExecutor(processes, initializer=_start_worker, initargs=(exclusions,)) as pool:
        yield from pool.map(_harvest_in_worker, chosen)


def _write_lines(path: Path, files: Iterable[tuple[str, SourceFile]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for package, file in files:
            record = {"package": package, "path": file.path, "text": file.text}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_licences(path: Path, held_out: list[wheels.Wheel]) -> None:
    parts: list[str] = []
    for wheel in held_out:
        with zipfile.ZipFile(wheel.path) as archive:
            texts = wheels.licence_texts(archive)
        parts.append("\n\n".join([f"== {wheel.package} {wheel.version} ==", *texts]))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _use(found: Harvest, files: list[SourceFile], held_out: bool) -> PackageUse:
    return PackageUse(
        name=found.wheel.package,
        version=str(found.wheel.version),
        licence=found.licence,
        wheel_sha256=found.digest,
        files=len(files),
        characters=sum(len(file.text) for file in files),
        held_out=held_out,
    )


def build(
    folders: list[Path], benchmarks: list[Path], out: Path, manifest: Path, processes: int = 2
) -> None:
    """Runs the whole collection; see the module's first lines for what it writes."""
    chosen = wheels.newest(wheels.find_wheels(folders))
    held_out = [wheel for wheel in chosen if wheel.package in HELD_OUT]
    rest = [w for w in chosen if w.package not in HELD_OUT and w.package not in _NO_CODE]
    out.mkdir(parents=True, exist_ok=True)

    kept_back = [harvest(wheel, Exclusions()) for wheel in held_out]
    _write_lines(
        out / "held_out.jsonl", ((h.wheel.package, file) for h in kept_back for file in h.files)
    )
    _write_licences(out / "held_out_licences.txt", held_out)
    exclusions = Exclusions(
        benchmark=benchmark_runs(benchmarks),
        standard_library=standard_library(),
        held_out=union([file.shingles for h in kept_back for file in h.files]),
    )

    uses = [_use(found, found.files, held_out=True) for found in kept_back]
    seen: set[int] = set()
    selected: list[tuple[str, SourceFile]] = []
    rejected: collections.Counter[str] = collections.Counter()
    without_licence = 0
    for found in _harvest_all(rest, exclusions, processes):
        rejected.update(found.rejected)
        without_licence += not found.licence
        files = take(found.wheel.package, found.files, seen, rejected)
        if files:
            uses.append(_use(found, files, held_out=False))
        selected.extend((found.wheel.package, file) for file in files)
    random.Random(_SEED).shuffle(selected)
    _write_lines(out / "corpus.jsonl", selected)
    summary = write_manifest(manifest, uses, without_licence, rejected)
    print(json.dumps(summary, indent=1))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of wheels")
    parser.add_argument("--out", type=Path, default=Path(".train"))
    parser.add_argument("--manifest", type=Path, default=Path("training/manifest.json"))
    parser.add_argument("--exclude", nargs="*", type=Path, default=[], help="benchmark .jsonl.gz")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    build(
        arguments.folders,
        arguments.exclude,
        arguments.out,
        arguments.manifest,
        arguments.processes,
    )


if __name__ == "__main__":
    main()
