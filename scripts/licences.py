"""Write the tables of docs/dependencies.md; run by `make licences`.

Names and reasons come from pyproject.toml, clients/vscode/package.json and REASONS below, versions
from the lock files, licences from the metadata of what is installed in .venv and from
package-lock.json. With --check nothing is written: exit status 1 where the page would change.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
BEGIN, END = "<!-- dependencies: written by `make licences` -->", "<!-- end of dependencies -->"
EXTENSION = ROOT / "clients" / "vscode"

REASONS = {
    "pygls": "the server's framework: methods, capabilities, notebooks",
    "lsprotocol": "the protocol's types, which pygls speaks",
    "msgspec": "records between processes, settings and their schema, checked while they are read",
    "pathspec": "globs as `.gitignore` has them: which files are left alone",
    "rich": "the terminal's drafts, diffs and tables",
    "safetensors": "reads weights without running code",
    "tokenizers": "reads `tokenizer.json`, the format of every checkpoint",
    "torch": "runs the model",
    "tree-sitter": "parses half-written code: scopes, whole statements, outlines",
    "tree-sitter-c": "grammar",
    "tree-sitter-cpp": "grammar",
    "tree-sitter-go": "grammar",
    "tree-sitter-html": "grammar",
    "tree-sitter-java": "grammar",
    "tree-sitter-javascript": "grammar",
    "tree-sitter-json": "grammar",
    "tree-sitter-python": "grammar",
    "tree-sitter-ruby": "grammar",
    "tree-sitter-rust": "grammar",
    "tree-sitter-typescript": "grammar",
    "typer": "the command line, its help and exit codes",
    "watchfiles": "tells of changed settings and files without asking for them",
    "setuptools": "builds the wheel; torch wants it as well",
    "transformers": "the reference that our forward is held to; no user needs it",
    "vllm": "the GPU engine",
    "httpx": "speaks to a `vllm serve` elsewhere",
    "basedpyright": "strict types",
    "build": "`make dist`",
    "coverage": "what the tests run, for `make coverage`",
    "hypothesis": "property tests",
    "matplotlib": "the plots of bench/results",
    "numpy": "training data, and tests of it",
    "pip-tools": "`make lock`",
    "psutil": "memory and processes in tests and benches",
    "pytest": "tests",
    "pytest-asyncio": "tests that are coroutines",
    "pytest-lsp": "the tests' ordinary client",
    "pytest-timeout": "no test hangs",
    "ruff": "lint and format",
    "vscode-languageclient": "the extension's side of the protocol",
    "@biomejs/biome": "lint and format",
    "@types/node": "types",
    "@types/vscode": "types; its version is the oldest VS Code that the extension runs in",
    "@vscode/vsce": "packs the `.vsix`",
    "esbuild": "bundles the extension into one file",
    "typescript": "strict types",
}
GROUPS = {
    "dependencies": "runs dg-lsp",
    "build-system": "builds it",
    "gpu": "`dg-lsp[gpu]`",
    "remote": "`dg-lsp[remote]`",
    "reference": "`dg-lsp[reference]`",
    "dev": "tests, checks, training",
}
UNLOCKED = {"vllm": "Apache-2.0"}
"""Chosen by whoever has the GPU: the licence that version 0.32.0 states."""
SAYS = {
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What metadata says in words, and the SPDX identifier."""

_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


class Row(NamedTuple):
    """One direct dependency."""

    name: str
    version: str
    licence: str
    used: str


def locked(*names: str) -> dict[str, str]:
    """Versions by name in lock files of requirements/."""
    found: dict[str, str] = {}
    for name in names:
        found |= dict(_LOCKED.findall((ROOT / "requirements" / f"{name}.txt").read_text()))
    return found


def wanted() -> dict[str, list[str]]:
    """Groups by the Python package that they name, in the order of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = {
        "dependencies": project["project"]["dependencies"],
        "build-system": project["build-system"]["requires"],
        **project["project"]["optional-dependencies"],
    }
    found: dict[str, list[str]] = {}
    for group, requirements in groups.items():
        for requirement in requirements:
            name = re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]
            found.setdefault(name, []).append(group)
    return found


def licence_of(name: str) -> str:
    """What an installed package says of its licence, as SPDX where that is clear."""
    try:
        metadata = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit(
            f"{name} is locked and not installed; run: make .venv/.dev-ready"
        ) from None
    if expression := metadata.get("License-Expression"):
        return expression
    said = (metadata.get("License") or "").strip()
    if said and len(said) < 40 and "\n" not in said:
        return SAYS.get(said, said)
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or []
        if line.startswith("License :: OSI Approved :: ")
    ]
    if not classifiers:
        raise SystemExit(f"{name} does not say its licence; look, and put it into {__file__}")
    return " AND ".join(SAYS.get(line, line) for line in classifiers)


def python_rows() -> Iterator[Row]:
    """The packages that pyproject.toml names."""
    versions = locked("runtime", "torch", "dev")
    for name, groups in wanted().items():
        used = ", ".join(GROUPS[group] for group in groups)
        if name in UNLOCKED:
            yield Row(name, "not locked", UNLOCKED[name], used)
        else:
            yield Row(name, versions[name], licence_of(name), used)


def npm_rows() -> Iterator[Row]:
    """The packages that the extension names."""
    packages = npm_packages()
    manifest = json.loads((EXTENSION / "package.json").read_text())
    for part, used in (("dependencies", "in the extension"), ("devDependencies", "builds it")):
        for name in manifest[part]:
            package = packages[f"node_modules/{name}"]
            yield Row(name, package["version"], package["license"], used)


def npm_packages() -> dict[str, dict[str, Any]]:
    """What package-lock.json holds, by folder."""
    return json.loads((EXTENSION / "package-lock.json").read_text())["packages"]


def direct_table(rows: Iterable[Row]) -> str:
    """Rows with the reason for each."""
    lines = ["| package | version | licence | where | why |", "|---|---|---|---|---|"]
    for row in rows:
        reason = REASONS[row.name]
        lines.append(f"| {row.name} | {row.version} | {row.licence} | {row.used} | {reason} |")
    return "\n".join(lines)


def brought_table(packages: dict[str, str], direct: set[str]) -> str:
    """Licences by what the direct dependencies bring along."""
    by_licence: dict[str, list[str]] = {}
    for name, version in sorted(packages.items()):
        if name not in direct:
            by_licence.setdefault(licence_of(name), []).append(f"{name} {version}")
    lines = ["| licence | packages |", "|---|---|"]
    lines += [
        f"| {licence} | {', '.join(names)} |" for licence, names in sorted(by_licence.items())
    ]
    return "\n".join(lines)


def npm_brought_table() -> str:
    """How many packages under which licence the extension's tools bring along."""
    counts: dict[str, int] = {}
    for folder, package in npm_packages().items():
        if folder:
            licence = package.get("license", "not stated")
            counts[licence] = counts.get(licence, 0) + 1
    lines = ["| licence | packages |", "|---|---|"]
    lines += [f"| {licence} | {count} |" for licence, count in sorted(counts.items())]
    return "\n".join(lines)


def tables() -> str:
    """Everything that stands between the marks."""
    python, npm = list(python_rows()), list(npm_rows())
    names = {row.name for row in (*python, *npm)}
    if spare := REASONS.keys() - names:
        raise SystemExit(f"Nothing names {', '.join(sorted(spare))}; remove it from {__file__}")
    if missing := names - REASONS.keys():
        raise SystemExit(f"Say in {__file__} why there is {', '.join(sorted(missing))}")
    runtime, everything = locked("runtime", "torch"), locked("runtime", "torch", "dev")
    only_dev = {name: version for name, version in everything.items() if name not in runtime}
    return "\n\n".join(
        [
            "## Python",
            direct_table(python),
            "They bring along, to run:",
            brought_table(runtime, names),
            "and to test and check:",
            brought_table(only_dev, names),
            "## The VS Code extension",
            direct_table(npm),
            "With all that these bring along, by the licences in `package-lock.json`:",
            npm_brought_table(),
        ]
    )


def main() -> None:
    """Write the page, or say that it would change."""
    old = PAGE.read_text("utf-8")
    before, _, rest = old.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{PAGE} has no place for the tables; write {BEGIN} and {END} there.")
    new = f"{before}{BEGIN}\n{tables()}\n{END}{after}"
    if new == old:
        return
    if "--check" in sys.argv[1:]:
        sys.exit("docs/dependencies.md is out of date; run: make licences")
    PAGE.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
