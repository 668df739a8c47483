"""Imports go one way, dg_lsp to dg_engine to dg_kernels, and never lead back to their module; the
server stays free of torch.

Run by `make check`; prints each violation as FILE:LINE and exits with 1 when there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

PACKAGES = {"dg_lsp": "server", "dg_engine": "engine", "dg_kernels": "kernels"}
HEAVY = frozenset({"torch", "transformers", "triton", "vllm", "dg_kernels"})
"""What costs seconds to import."""
LIGHT_ENGINE = tuple(
    f"dg_engine.{name}" for name in ("client", "engine", "job", "models", "tokenizer", "wire")
)
"""What the language server uses of the engine."""
KERNELS_MAY = frozenset({"dg_kernels", "torch", "triton"}) | sys.stdlib_module_names


class Import(NamedTuple):
    """One imported name and where; `typing_only` when it stands under TYPE_CHECKING."""

    target: str
    line: int
    typing_only: bool

    @property
    def top(self) -> str:
        """The package that is imported."""
        return self.target.partition(".")[0]


class Module(NamedTuple):
    """One file and what it imports."""

    path: Path
    imports: list[Import]


def load(root: Path) -> dict[str, Module]:
    """All modules of the three packages by dotted name."""
    modules: dict[str, Module] = {}
    for package, folder in PACKAGES.items():
        base = root / folder
        for path in sorted((base / package).rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            tree = ast.parse(path.read_bytes(), str(path))
            found = list(_imports(tree, name if is_package else name.rpartition(".")[0], False))
            modules[name] = Module(path.relative_to(root), found)
    return modules


def _imports(node: ast.AST, package: str, typing_only: bool) -> Iterator[Import]:
    """Imports anywhere below a node, those in functions and by constant name included."""
    match node:
        case ast.Import():
            for alias in node.names:
                yield Import(alias.name, node.lineno, typing_only)
        case ast.ImportFrom():
            base = node.module or ""
            if node.level:
                kept = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*kept, *([base] if base else [])])
            for alias in node.names:
                # `from package import name` may name a module; `closure` tries the longest first.
                yield Import(f"{base}.{alias.name}", node.lineno, typing_only)
        case ast.Call(
            func=ast.Name("__import__") | ast.Attribute(attr="import_module") as called,
            args=[ast.Constant(str() as target), *_],
        ):
            yield Import(target, called.lineno, typing_only)
        case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            for child in node.body:
                yield from _imports(child, package, True)
            for child in node.orelse:
                yield from _imports(child, package, typing_only)
            return
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, package, typing_only)


def closure(start: str, modules: dict[str, Module]) -> dict[str, str]:
    """Modules that run when `start` is imported and used, each with the one that imports it."""
    reached = {start: ""}
    queue = [start]
    while queue:
        name = queue.pop()
        targets = [found.target for found in modules[name].imports if not found.typing_only]
        for target in _known([*targets, name.rpartition(".")[0]], modules):
            if target not in reached:
                reached[target] = name
                queue.append(target)
    return reached


def _known(targets: list[str], modules: dict[str, Module]) -> Iterator[str]:
    """The modules that names are in, of those that are ours."""
    for target in targets:
        while target and target not in modules:
            target = target.rpartition(".")[0]
        if target:
            yield target


def _rounds(modules: dict[str, Module]) -> Iterator[str]:
    """Modules whose imports, those in functions too, lead back to them; one round at most."""
    imports = {
        name: set(_known([one.target for one in module.imports if not one.typing_only], modules))
        for name, module in modules.items()
    }
    try:
        TopologicalSorter({name: found - {name} for name, found in imports.items()}).prepare()
    except CycleError as error:
        way = error.args[1]
        yield f"{modules[way[0]].path}:1: {' -> '.join(reversed(way))}; imports never lead back"


def _direct(name: str, module: Module) -> Iterator[str]:
    """Violations that one file shows by itself."""
    package = name.partition(".")[0]
    for found in module.imports:
        where = f"{module.path}:{found.line}: {name} imports {found.top}"
        if package == "dg_kernels" and found.top not in KERNELS_MAY:
            yield f"{where}; kernels import torch and triton only"
        elif package == "dg_engine" and found.top == "dg_lsp":
            yield f"{where}; imports go from dg_lsp to dg_engine, never back"
        elif package == "dg_lsp" and found.top in HEAVY:
            yield f"{where}; the server stays light, the engine runs in its own process"


def _indirect(start: str, modules: dict[str, Module]) -> Iterator[str]:
    """Heavy imports that a light module reaches through others."""
    reached = closure(start, modules)
    for name in reached:
        own = start.startswith("dg_lsp") and name.startswith("dg_lsp")
        for found in modules[name].imports:
            if not found.typing_only and found.top in HEAVY and not own:
                chain = [name]
                while reached[chain[-1]]:
                    chain.append(reached[chain[-1]])
                way = " <- ".join(chain)
                yield f"{modules[name].path}:{found.line}: {found.top} is reached by {way}"


def violations(root: Path) -> list[str]:
    """Every violation under `root`, one sentence each, without repeats."""
    modules = load(root)
    found = dict.fromkeys(_rounds(modules))
    for name, module in modules.items():
        found.update(dict.fromkeys(_direct(name, module)))
    seen: set[str] = set()
    for start in modules:
        if start.partition(".")[0] == "dg_lsp" or start in LIGHT_ENGINE:
            for sentence in _indirect(start, modules):
                place = sentence.partition(" is reached")[0]
                if place not in seen:  # one chain is enough
                    seen.add(place)
                    found[sentence] = None
    return list(found)


def main() -> int:
    """Print the violations of this checkout."""
    found = violations(Path(__file__).resolve().parents[1])
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
