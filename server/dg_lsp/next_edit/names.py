"""Where a Python name is bound and used, and in which scope: by tree-sitter, without the model.

Follows the rules of the language reference ("Naming and binding"): the name of a definition, its
decorators, defaults, annotations and bases belong to the scope around it; names of a class's own
scope are not seen inside its functions; a comprehension has a scope of its own, but its first
iterable is evaluated outside.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

import msgspec
from tree_sitter import Node, Tree

_FUNCTIONS = frozenset({"function_definition", "lambda"})
_COMPREHENSIONS = frozenset(
    {
        "list_comprehension",
        "set_comprehension",
        "dictionary_comprehension",
        "generator_expression",
    }
)
_SCOPES = _FUNCTIONS | _COMPREHENSIONS | {"class_definition", "module"}
_TARGETS = frozenset(
    {"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "tuple", "list"}
)
"""What may stand between a name and the statement that binds it."""
_PARAMETERS = frozenset({"parameters", "lambda_parameters"})
_PARAMETER = frozenset(
    {
        "default_parameter",
        "typed_parameter",
        "typed_default_parameter",
        "list_splat_pattern",
        "dictionary_splat_pattern",
    }
)


class Role(enum.StrEnum):
    """What an occurrence does with a name."""

    BIND = "bind"
    IMPORT = "import"
    """A bind, too, by the name that something has elsewhere."""
    PARAMETER = "parameter"
    """A bind, too."""
    USE = "use"
    """A read, a deletion, or a change in place (`x += 1`)."""
    ATTRIBUTE = "attribute"
    """The name of an attribute, of whatever object."""
    KEYWORD = "keyword"
    """The name of an argument in a call."""
    UNCLEAR = "unclear"
    """Something that no rule here tells of: `global`, a pattern of `match`."""


class Occurrence(msgspec.Struct, frozen=True):
    """A name at a place."""

    node: Node
    role: Role
    scope: Node
    """The innermost scope that it is looked up from."""

    @property
    def line(self) -> int:
        """From zero."""
        return self.node.start_point.row

    @property
    def is_bind(self) -> bool:
        """Whether it gives the name a value."""
        return self.role in (Role.BIND, Role.PARAMETER, Role.IMPORT)


def occurrences(tree: Tree, raw: bytes, name: str) -> list[Occurrence]:
    """Every occurrence of a name as an identifier, in the order of the text."""
    found: list[Occurrence] = []
    for match in re.finditer(rb"(?<!\w)" + re.escape(name.encode()) + rb"(?!\w)", raw):
        node = tree.root_node.descendant_for_byte_range(match.start(), match.end())
        # Neighbours that are no ASCII are told from letters by the node's own ends.
        if node is None or node.type != "identifier":
            continue
        if (node.start_byte, node.end_byte) == match.span():
            found.append(Occurrence(node, role_of(node), scope_of(node)))
    return found


def role_of(node: Node) -> Role:
    """What an identifier is there for."""
    parent = node.parent
    if parent is None:
        return Role.UNCLEAR
    match parent.type:
        case "attribute":
            return Role.USE if _is(parent, "object", node) else Role.ATTRIBUTE
        case "keyword_argument":
            return Role.KEYWORD if _is(parent, "name", node) else Role.USE
        case "function_definition" | "class_definition":
            return Role.BIND
        case "named_expression" if _is(parent, "name", node):
            # In a comprehension it binds in the function around.
            return Role.UNCLEAR if scope_of(node).type in _COMPREHENSIONS else Role.BIND
        case "global_statement" | "nonlocal_statement" | "keyword_pattern":
            return Role.UNCLEAR
        case "dotted_name" | "aliased_import":
            return _role_in_import(node, parent)
        case _:
            return _role_in_target(node, parent)


def _role_in_import(node: Node, parent: Node) -> Role:
    if parent.type == "aliased_import":
        return Role.BIND
    around = parent.parent
    if around is None or around.type in ("case_pattern", "class_pattern", "keyword_pattern"):
        return Role.UNCLEAR
    if around.type == "import_from_statement":
        return Role.ATTRIBUTE if _is(around, "module_name", parent) else Role.IMPORT
    if around.type == "import_statement":
        return Role.IMPORT if _same(parent.children[0], node) else Role.ATTRIBUTE
    # What an alias stands for, a module of `from`, a decorator in old grammars.
    return Role.ATTRIBUTE


def _role_in_target(node: Node, parent: Node) -> Role:
    if parent.type in _PARAMETERS:
        return Role.PARAMETER
    if parent.type in _PARAMETER and _is_parameter(node, parent):
        return Role.PARAMETER
    inner, outer = node, parent
    while outer.type in _TARGETS and outer.parent is not None:
        inner, outer = outer, outer.parent
    if outer.type in ("assignment", "for_statement", "for_in_clause"):
        return Role.BIND if _is(outer, "left", inner) else Role.USE
    return Role.BIND if outer.type == "as_pattern_target" else Role.USE


def _is_parameter(node: Node, parent: Node) -> bool:
    top = parent
    while top.parent is not None and top.type in _PARAMETER:
        top = top.parent
    named = parent.child_by_field_name("name")
    first = named if named is not None else parent.named_children[0]
    return top.type in _PARAMETERS and _same(first, node)


def scope_of(node: Node) -> Node:
    """The scope that a name is looked up from, or bound in."""
    inner, outer = node, node.parent
    while outer is not None:
        if outer.type in _SCOPES and _is_inside(inner, outer):
            return outer
        inner, outer = outer, outer.parent
    return inner


def _is_inside(inner: Node, outer: Node) -> bool:
    """Whether a child of a scope's node belongs to the scope, not to what is around it."""
    if outer.type == "module":
        return True
    if outer.type == "class_definition":
        return _is(outer, "body", inner)
    if outer.type in _FUNCTIONS:
        return _is(outer, "body", inner) or _is(outer, "parameters", inner)
    return True


def _evaluated_outside(node: Node, scope: Node) -> bool:
    """Whether a name in a scope's node is looked up around it: a default, an annotation of a
    parameter, the first iterable of a comprehension."""
    inner = node
    while inner.parent is not None and not _same(inner.parent, scope):
        inner = inner.parent
    if scope.type in _FUNCTIONS:
        return inner.type in _PARAMETERS
    if scope.type not in _COMPREHENSIONS or inner.type != "for_in_clause":
        return False
    first = next(child for child in scope.children if child.type == "for_in_clause")
    right = inner.child_by_field_name("right")
    return _same(first, inner) and right is not None and holds(right, node)


def scopes_around(occurrence: Occurrence) -> Iterator[Node]:
    """The scopes in which a name is looked up, from the inside out."""
    scope: Node | None = occurrence.scope
    first = True
    while scope is not None:
        looked_up = scope.type != "class_definition" or first
        outside = first and not occurrence.is_bind and _evaluated_outside(occurrence.node, scope)
        if looked_up and not outside:
            yield scope
        # A default of a method is looked up in the class, so that one still counts as first.
        first = outside
        scope = None if scope.type == "module" else scope_of(scope)


def binder_of(occurrence: Occurrence, bound_in: set[int]) -> Node | None:
    """The scope that gives an occurrence its meaning, of those (by node id) that bind the name."""
    return next((s for s in scopes_around(occurrence) if s.id in bound_in), None)


def owner_of(node: Node) -> Node | None:
    """The class whose method holds a node, None elsewhere."""
    scope: Node = scope_of(node)
    while scope.type != "module":
        if scope.type == "class_definition":
            return scope
        scope = scope_of(scope)
    return None


def _is(parent: Node, field: str, child: Node) -> bool:
    return any(_same(found, child) for found in parent.children_by_field_name(field))


def _same(one: Node, other: Node) -> bool:
    return one.id == other.id


def holds(outer: Node, inner: Node) -> bool:
    """Whether one node lies within another, or is it."""
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
