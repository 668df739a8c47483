"""A file's outline: what it defines, as signatures, and what it imports."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec
from tree_sitter import Node

from dg_lsp.context.imports import Import, imports_in
from dg_lsp.syntax.grammars import parser_of
from dg_lsp.syntax.parsing import parsed, parsed_soon

MOST_DEFINITIONS = 400
"""Of one file; generated files define thousands of names that nobody types."""
MOST_MEMBERS = 24
"""Of one class, shown under its head."""
MOST_DEPTH = 24
"""Of classes and conditions in one another."""
_MOST_LINES = 8
"""Of a definition that has no body to leave out."""
_MOST_CHARS = 400
"""Of one signature."""

_WRAPPERS = frozenset(
    {
        "ambient_declaration",
        "block",
        "body_statement",
        "decorated_definition",
        "declaration_list",
        "else_clause",
        "except_clause",
        "export_statement",
        "if_statement",
        "internal_module",
        "linkage_specification",
        "mod_item",
        "module",
        "namespace_definition",
        "preproc_if",
        "preproc_ifdef",
        "program",
        "source_file",
        "template_declaration",
        "translation_unit",
        "try_statement",
        "type_declaration",
    }
)
"""Nodes whose children are as much at the top of a file as they are themselves."""
_CLASSES = frozenset(
    {
        "abstract_class_declaration",
        "class",
        "class_declaration",
        "class_definition",
        "class_specifier",
        "enum_declaration",
        "enum_item",
        "enum_specifier",
        "impl_item",
        "interface_declaration",
        "record_declaration",
        "struct_item",
        "struct_specifier",
        "trait_item",
        "union_specifier",
    }
)
"""Nodes that have members."""
_CONSTANTS = frozenset(
    {"const_item", "declaration", "expression_statement", "lexical_declaration", "static_item"}
)
_NAMES = frozenset(
    {
        "constant",
        "field_identifier",
        "identifier",
        "property_identifier",
        "qualified_identifier",
        "type_identifier",
    }
)


class Definition(msgspec.Struct, frozen=True):
    """Something that a file defines at its top, or a class in a class."""

    name: str
    owner: str
    """The class that it belongs to; empty at the top."""
    first: int
    last: int
    """Lines, from zero, the last included."""
    text: str
    """The signature; of a class, its head and its members' signatures."""


class Outline(msgspec.Struct, frozen=True):
    """What a file defines, in the order of its lines, and imports."""

    definitions: tuple[Definition, ...]
    imports: tuple[Import, ...]

    def named(self, name: str) -> Definition | None:
        """The definition of a name at the top of the file."""
        return next((d for d in self.definitions if d.name == name and not d.owner), None)


def outline_of(text: str, language: str) -> Outline:
    """The outline of a text; empty for languages without a grammar. Takes about 1 ms per 10 kB.

    The interpreter may switch to other threads while it parses.
    """
    parser = parser_of(language)
    if parser is None:
        return Outline((), ())
    raw = text.encode()
    tree = parsed(parser, raw)
    definitions = [*_found(tree.root_node, raw, language)][:MOST_DEFINITIONS]
    return Outline(tuple(definitions), tuple(imports_in(tree.root_node, raw, language)))


def imports_of(text: str, language: str) -> tuple[Import, ...]:
    """What the head of a file imports; none where that takes too long to tell."""
    parser = parser_of(language)
    if parser is None:
        return ()
    raw = text.encode()
    try:
        tree = parsed_soon(parser, raw)
    except ValueError:
        return ()
    return tuple(imports_in(tree.root_node, raw, language))


def _found(
    top: Node, raw: bytes, language: str, owner: str = "", depth: int = 0
) -> Iterator[Definition]:
    """Definitions below a node; of what is in a class, the classes."""
    if depth > MOST_DEPTH:
        return
    for node in top.named_children:
        if node.type in _WRAPPERS and not (owner and node.type == "block"):
            yield from _found(node, raw, language, owner, depth + 1)
        elif (name := _name_of(node, raw)) and (text := _signature(node, raw, language)):
            first, last = node.start_point.row, node.end_point.row
            body = node.child_by_field_name("body")
            is_class = node.type in _CLASSES and body is not None
            if is_class or not owner:
                yield Definition(name, owner, first, last, text)
            if is_class and body is not None:
                yield from _found(body, raw, language, name, depth + 1)


def _name_of(node: Node, raw: bytes) -> str:
    """What a node defines, empty when it defines nothing."""
    named: Node | None = node
    if node.type in _CONSTANTS:
        # `NAME = 1`, `const f = …`, a prototype.
        named = node.named_child(0) if node.named_child_count else None
        if named is not None and named.type not in ("assignment", "variable_declarator"):
            named = node
    if named is None:
        return ""
    for field in ("name", "declarator", "left", "type"):
        if field == "type" and node.type != "impl_item":
            continue
        found = named.child_by_field_name(field)
        while found is not None and found.type not in _NAMES:
            found = found.child_by_field_name("declarator")
        if found is not None:
            return _text(raw, found.start_byte, found.end_byte)
    return ""


def _signature(node: Node, raw: bytes, language: str) -> str:
    """A definition as it is shown: without the bodies of functions."""
    head = _head(node, raw, language)
    body = node.child_by_field_name("body")
    if not head or body is None or node.type not in _CLASSES:
        return head
    column = node.start_point.column
    members: list[str] = []
    for member in _members(body):
        text = _head(member, raw, language)
        if text and len(members) < MOST_MEMBERS:
            indent = min(max(member.start_point.column - column, 2), 4)
            members.append(textwrap.indent(text, " " * indent))
    end = {"python": "", "ruby": "\nend"}.get(language, "\n}")
    return "\n".join([_opened(node, body, raw, language), *members]) + end


def _members(body: Node) -> Iterator[Node]:
    for node in body.named_children:
        if node.type == "decorated_definition":
            yield from node.children_by_field_name("definition")
        elif "comment" not in node.type and node.type != "access_specifier":
            yield node


def _head(node: Node, raw: bytes, language: str) -> str:
    """A definition without its body, dedented; empty when it is long and has none."""
    body = node.child_by_field_name("body")
    if body is None:
        if node.end_point.row - node.start_point.row >= _MOST_LINES:
            return ""
        text = _text(raw, node.start_byte, node.end_byte).rstrip()
        is_string = language == "python" and text.startswith(('"', "'", "r"))
        return "" if is_string and "=" not in text else _dedented(text, raw, node)
    head = _dedented(_text(raw, node.start_byte, body.start_byte).rstrip(), raw, node)
    ending = {"python": " ...", "ruby": ""}.get(language, " { ... }")
    return head.rstrip("{ ") + ending


def _opened(node: Node, body: Node, raw: bytes, language: str) -> str:
    head = _dedented(_text(raw, node.start_byte, body.start_byte).rstrip(), raw, node)
    return head if language in ("python", "ruby") else head.rstrip("{ ") + " {"


def _dedented(text: str, raw: bytes, node: Node) -> str:
    """Text whose further lines stand as far to the left as the line of its first."""
    line = raw[node.start_byte - node.start_point.column : node.start_byte + 1]
    column = len(line) - len(line.lstrip())
    first, *rest = text[:_MOST_CHARS].split("\n")
    lead = "type " if node.type == "type_spec" else ""
    return "\n".join([lead + first, *(line[min(column, _indent(line)) :] for line in rest)])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _text(raw: bytes, start: int, end: int) -> str:
    return raw[start:end].decode(errors="replace")
