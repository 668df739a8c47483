"""Writes the list of packages that the training text came from."""

import collections
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PackageUse:
    """What was taken from one package."""

    name: str
    version: str
    licence: str
    wheel_sha256: str
    files: int
    characters: int
    held_out: bool = False


def _line(use: PackageUse) -> str:
    record = asdict(use)
    if not use.held_out:
        del record["held_out"]
    return json.dumps(record, ensure_ascii=False)


def write_manifest(
    path: Path,
    uses: list[PackageUse],
    packages_without_permissive_licence: int,
    files_left_out: collections.Counter[str],
) -> dict[str, Any]:
    """Writes one package a line, by name, after a summary; returns the summary."""
    trained = [use for use in uses if not use.held_out]
    kept_back = [use for use in uses if use.held_out]
    summary = {
        "packages": len(trained),
        "files": sum(use.files for use in trained),
        "characters": sum(use.characters for use in trained),
        "held_out_packages": len(kept_back),
        "held_out_files": sum(use.files for use in kept_back),
        "held_out_characters": sum(use.characters for use in kept_back),
        "packages_without_permissive_licence": packages_without_permissive_licence,
        "files_left_out": dict(sorted(files_left_out.items())),
    }
    lines = ",\n".join(_line(use) for use in sorted(uses, key=lambda use: use.name))
    path.write_text(
        f'{{"summary": {json.dumps(summary)},\n"packages": [\n{lines}\n]}}\n', encoding="utf-8"
    )
    return summary
