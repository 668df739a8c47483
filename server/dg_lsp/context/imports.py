"""What a file imports, by language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec
from tree_sitter import Node

ANY = "*"
"""Every name of the module may be used as it is."""
MODULE = ""
"""The module itself is what is named; its names are used behind a dot."""

_IMPORTING = frozenset(
    {
        "call",
        "export_statement",
        "import_declaration",
        "import_from_statement",
        "import_spec",
        "import_statement",
        "lexical_declaration",
        "mod_item",
        "preproc_include",
        "use_declaration",
    }
)
_MOST_DEPTH = 8
_MOST_BYTES = 4_000
"""Of one import."""
_JS_CLAUSE = re.compile(r"(?:import|export)\s+(?:type\s+)?(.*?)\s*from\s*['\"]", re.DOTALL)
_JS_REQUIRE = re.compile(
    r"(?:const|let|var)\s+(\w+|\{[^}]*\})\s*=\s*require\(\s*['\"]([^'\"]+)['\"]", re.DOTALL
)
_JS_NAME = re.compile(r"[\w$]+")
_RUST_USE = re.compile(r"use\s+(.*?)(?:::)?(?:\{(.*)\})?\s*;", re.DOTALL)
_RUBY_REQUIRE = re.compile(r"\A(require|require_relative)\W+['\"]([^'\"]+)['\"]")
_JAVA_IMPORT = re.compile(r"import\s+(static\s+)?([\w.]+?)(\.\*)?\s*;")


class Import(msgspec.Struct, frozen=True):
    """A module as the importing file spells it, and the names that it brings."""

    module: str
    names: tuple[tuple[str, str], ...]
    """What each is called here and in the module; MODULE or ANY in place of the latter."""
    first: int = 0
    last: int = -1
    """The lines of the statement, from zero, the last included."""


def imports_in(root: Node, raw: bytes, language: str) -> Iterator[Import]:
    """The imports of a file, those in functions left out."""
    read = _BY_LANGUAGE.get(language)
    if read is None:
        return
    for node in _statements(root):
        if node.type in _IMPORTING:
            first, last = node.start_point.row, node.end_point.row
            for found in read(node, raw):
                yield msgspec.structs.replace(found, first=first, last=last)


def _statements(root: Node, depth: int = 0) -> Iterator[Node]:
    """Statements at the top of a file and under conditions there."""
    for node in root.named_children:
        holds = node.type in ("if_statement", "try_statement", "block", "import_declaration")
        if holds and depth < _MOST_DEPTH:
            yield from _statements(node, depth + 1)
        if node.type == "import_spec_list":
            yield from node.named_children
        yield node


def _python(node: Node, raw: bytes) -> Iterator[Import]:
    names = [_named(raw, found) for found in node.children_by_field_name("name")]
    if node.type == "import_statement":
        for module, alias in names:
            # `import a.b` binds `a`, and what is used is `a.b.c`.
            yield Import(module, ((alias or module, MODULE),))
    elif node.type == "import_from_statement":
        module = _field(raw, node, "module_name")
        star = any(child.type == "wildcard_import" for child in node.named_children)
        bound = tuple((alias or name, name) for name, alias in names)
        yield Import(module, (("", ANY),) if star else bound)
        dot = "" if module.endswith(".") else "."
        for name, alias in names:
            # A name may as well be a module in that package.
            yield Import(f"{module}{dot}{name}", ((alias or name, MODULE),))


def _javascript(node: Node, raw: bytes) -> Iterator[Import]:
    source = _field(raw, node, "source")
    text = _text(raw, node)
    if source:
        clause = _JS_CLAUSE.match(text)
        yield Import(source.strip("'\""), _js_names(clause[1]) if clause else ())
    elif node.type == "lexical_declaration":
        for bound, module in _JS_REQUIRE.findall(text):
            yield Import(module, _js_names(bound))


def _js_names(clause: str) -> tuple[tuple[str, str], ...]:
    outer, _, inner = clause.partition("{")
    names: list[tuple[str, str]] = []
    for part in outer.split(","):
        words = part.replace("*", " ").split()
        if words:
            names.append((words[-1], MODULE))
    for part in inner.partition("}")[0].split(","):
        words: list[str] = _JS_NAME.findall(part.replace("type ", ""))
        if words:
            names.append((words[-1], words[0]))
    return tuple(names)


def _go(node: Node, raw: bytes) -> Iterator[Import]:
    if node.type == "import_spec":
        module = _field(raw, node, "path").strip('"`')
        yield Import(module, ((_field(raw, node, "name") or module.rpartition("/")[2], MODULE),))


def _rust(node: Node, raw: bytes) -> Iterator[Import]:
    if node.type == "mod_item" and node.child_by_field_name("body") is None:
        name = _field(raw, node, "name")
        yield Import(f"self::{name}", ((name, MODULE),))
    used = _RUST_USE.search(_text(raw, node)) if node.type == "use_declaration" else None
    if used is None:
        return
    parts = [part.strip() for part in (used[2] or "").split(",")] if used[2] else [""]
    for part in filter(None, (f"{used[1]}::{part}".rstrip(":") for part in parts)):
        path, _, alias = part.partition(" as ")
        module, _, name = path.strip().rpartition("::")
        if name == "*":
            yield Import(module, (("", ANY),))
        elif module:
            yield Import(module, ((alias or name, name),))
            yield Import(f"{module}::{name}", ((alias or name, MODULE),))


def _c(node: Node, raw: bytes) -> Iterator[Import]:
    path = _field(raw, node, "path") if node.type == "preproc_include" else ""
    if path.startswith('"'):
        yield Import(path.strip('"'), (("", ANY),))


def _java(node: Node, raw: bytes) -> Iterator[Import]:
    if node.type != "import_declaration":
        return
    for is_static, path, star in _JAVA_IMPORT.findall(_text(raw, node)):
        module, _, name = path.rpartition(".")
        if is_static and not star:
            yield Import(module, ((name, name),))
        elif not star:
            yield Import(path, ((name, name),))


def _ruby(node: Node, raw: bytes) -> Iterator[Import]:
    if node.type == "call":
        for word, path in _RUBY_REQUIRE.findall(_text(raw, node)):
            yield Import(f"./{path}" if word == "require_relative" else path, (("", ANY),))


def _named(raw: bytes, node: Node) -> tuple[str, str]:
    """A name and its alias, empty without one."""
    if node.type != "aliased_import":
        return _text(raw, node), ""
    return _field(raw, node, "name"), _field(raw, node, "alias")


def _field(raw: bytes, node: Node, name: str) -> str:
    found = node.child_by_field_name(name)
    return _text(raw, found) if found else ""


def _text(raw: bytes, node: Node) -> str:
    end = min(node.end_byte, node.start_byte + _MOST_BYTES)
    return raw[node.start_byte : end].decode(errors="replace")


_BY_LANGUAGE: dict[str, Callable[[Node, bytes], Iterator[Import]]] = {
    "c": _c,
    "cpp": _c,
    "go": _go,
    "java": _java,
    "javascript": _javascript,
    "javascriptreact": _javascript,
    "python": _python,
    "ruby": _ruby,
    "rust": _rust,
    "typescript": _javascript,
    "typescriptreact": _javascript,
}
