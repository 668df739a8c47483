"""Finds wheels on disk and reads what the corpus needs from them."""

import hashlib
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from training.filters import wanted_path
from training.licences import licence_statements, parse_metadata


class Wheel(NamedTuple):
    """One wheel file; `package` is the normalised name."""

    package: str
    version: Version
    path: Path


def find_wheels(folders: Iterable[Path]) -> Iterator[Wheel]:
    """Every wheel below the folders; names that are no wheel names are passed over."""
    for folder in folders:
        for path in sorted(folder.rglob("*.whl")):
            try:
                name, version, _, _ = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            yield Wheel(str(name), version, path)


def newest(wheels: Iterable[Wheel]) -> list[Wheel]:
    """The newest wheel of each package, by package name; final releases before previews."""
    best: dict[str, Wheel] = {}
    for wheel in wheels:
        known = best.get(wheel.package)
        if known is None or _rank(wheel) > _rank(known):
            best[wheel.package] = wheel
    return [best[package] for package in sorted(best)]


def _rank(wheel: Wheel) -> tuple[bool, Version]:
    return not wheel.version.is_prerelease, wheel.version


def licences(archive: zipfile.ZipFile) -> list[str]:
    """What the METADATA of an open wheel says about the licence."""
    for name in archive.namelist():
        if re.fullmatch(r"[^/]+\.dist-info/METADATA", name):
            return licence_statements(parse_metadata(archive.read(name)))
    return []


def licence_texts(archive: zipfile.ZipFile) -> list[str]:
    """The licence files that an open wheel carries beside its METADATA."""
    names = [
        name
        for name in archive.namelist()
        if re.search(
            r"\.dist-info/(?:.*/)?(?:LICEN[SC]E|COPYING|NOTICE)[^/]*$", name, re.IGNORECASE
        )
    ]
    return [archive.read(name).decode("utf-8", "replace").strip() for name in sorted(names)]


def sources(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    """Path and content of each Python file whose path is wanted."""
    for name in sorted(archive.namelist()):
        if wanted_path(name):
            yield name, archive.read(name)


def sha256(path: Path) -> str:
    """Hexadecimal digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
