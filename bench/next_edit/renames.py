"""Renames made in real files, and edits that look like one: found with Python's own compiler.

`ast` and `symtable` say where a name is bound and used; the server finds it out by tree-sitter, so
each checks the other.
"""

from __future__ import annotations

import ast
import symtable
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from dg_lsp.bench.next_edits import LineChange

LEAST_USES = 2
MOST_USES = 12
LEAST_NAME = 3
ENDINGS = ("_value", "_item", "_new", "_part")


class Made(NamedTuple):
    """A case of one file."""

    kind: str
    first: LineChange
    rest: list[LineChange]
    note: str


class Span(NamedTuple):
    """A name's place: line from zero, and column in characters of a text that is ASCII."""

    line: int
    column: int


Function = ast.FunctionDef | ast.AsyncFunctionDef


def renames_in(text: str) -> list[Made]:
    """Renames of parameters, local names and functions, each begun where the name is bound."""
    tree, lines = ast.parse(text), text.splitlines()
    found: list[Made] = []
    for table, node in _functions(text, tree):
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if not symbol.is_local() or len(name) < LEAST_NAME or _is_seen_inside(table, name):
                continue
            binds, uses = _names(node, name)
            if symbol.is_parameter():
                places = [p for p in _parameters(node) if p[0] == name]
                start = places[0][1] if places else None
                uses = [*binds, *uses, *_keyword_places(tree, node, lines, name)]
            else:
                start = binds[0] if len(binds) == 1 else None
            made = start and _rename(text, lines, name, start, uses)
            if made:
                found.append(made)
    found += [made for made in _function_renames(text, tree, lines) if made]
    return found


def traps_in(text: str) -> list[Made]:
    """Edits of one use of a name after which nothing else should change."""
    tree, lines = ast.parse(text), text.splitlines()
    found: list[Made] = []
    for table, node in _functions(text, tree):
        names = [s.get_name() for s in table.get_symbols() if s.is_local()]
        names = [n for n in names if len(n) >= LEAST_NAME and not _is_seen_inside(table, n)]
        # `x += 1` binds x for Python, but means nothing without the binding before it.
        names = [n for n in names if not _is_changed_in_place(node, n)]
        for one in names:
            binds, uses = _names(node, one)
            others = [n for n in names if n != one]
            if others and len(uses) >= LEAST_USES and len(binds) <= 1:
                change = _replaced(lines, [uses[0]], one, others[0])
                note = "a use is of another name of the function"
                found.append(Made("trap", change[0], [], note))
            if len(binds) > 1 and len({b.line for b in binds}) > 1 and uses:
                new = _free(text, one)
                change = _replaced(lines, [binds[0]], one, new)
                note = "one of several bindings: which uses it was for cannot be told"
                if not any(u.line > binds[0].line and u.line < binds[1].line for u in uses):
                    found.append(Made("trap", change[0], [], note))
    return found


def _rename(text: str, lines: list[str], name: str, start: Span, uses: list[Span]) -> Made | None:
    left = sorted({use for use in uses if use.line != start.line})
    if not LEAST_USES <= len(left) <= MOST_USES or len(left) != len({*uses} - {start}):
        return None
    new = _free(text, name)
    (first,) = _replaced(lines, [start], name, new)
    return Made("rename", first, _replaced(lines, left, name, new), f"{name} to {new}")


def _function_renames(text: str, tree: ast.Module, lines: list[str]) -> Iterator[Made | None]:
    """Functions of the module, where no function has a name of its own that hides them."""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.decorator_list:
            continue
        name = node.name
        if text.count(f'"{name}"') or any(_hides(table, name) for table in _tables(text)):
            continue
        start = Span(node.lineno - 1, lines[node.lineno - 1].index(name))
        uses = [
            Span(n.lineno - 1, n.col_offset)
            for n in ast.walk(tree)
            if isinstance(n, ast.Name) and n.id == name
        ]
        defined = [n for n in ast.walk(tree) if isinstance(n, Function) and n.name == name]
        yield _rename(text, lines, name, start, uses) if len(defined) == 1 else None


def _functions(text: str, tree: ast.Module) -> Iterator[tuple[symtable.Function, Function]]:
    nodes: dict[tuple[int, str], Function] = {}
    for node in ast.walk(tree):
        if isinstance(node, Function):
            nodes[node.lineno, node.name] = node
            for decorator in node.decorator_list:  # symtable counts from the first of them
                nodes.setdefault((decorator.lineno, node.name), node)
    for table in _tables(text):
        node = nodes.get((table.get_lineno(), table.get_name()))
        if node is not None and isinstance(table, symtable.Function):
            yield table, node


def _tables(text: str) -> Iterator[symtable.SymbolTable]:
    rest = [symtable.symtable(text, "case.py", "exec")]
    while rest:
        table = rest.pop()
        yield table
        rest += table.get_children()


def _hides(table: symtable.SymbolTable, name: str) -> bool:
    if table.get_type() == "module" or name not in table.get_identifiers():
        return False
    symbol = table.lookup(name)
    return symbol.is_local() or symbol.is_parameter()


def _is_seen_inside(table: symtable.SymbolTable, name: str) -> bool:
    """Whether a function inside has the name, be it this one or its own."""
    return any(name in inner.get_identifiers() for inner in table.get_children())


def _names(node: Function, name: str) -> tuple[list[Span], list[Span]]:
    """Where a function's body binds and uses a name."""
    binds: list[Span] = []
    uses: list[Span] = []
    for statement in node.body:
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Name) and inner.id == name:
                place = Span(inner.lineno - 1, inner.col_offset)
                (binds if isinstance(inner.ctx, ast.Store) else uses).append(place)
            elif isinstance(inner, (ast.ExceptHandler, Function, ast.ClassDef)):
                if inner.name == name:
                    return [], []  # its place is not told
            elif isinstance(inner, ast.JoinedStr) and name in ast.unparse(inner):
                return [], []  # before Python 3.12 places in it are not told
    return sorted(binds), sorted(uses)


def _is_changed_in_place(node: Function, name: str) -> bool:
    return any(
        isinstance(inner, ast.AugAssign)
        and isinstance(inner.target, ast.Name)
        and inner.target.id == name
        for inner in ast.walk(node)
    )


def _parameters(node: Function) -> list[tuple[str, Span]]:
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return [(arg.arg, Span(arg.lineno - 1, arg.col_offset)) for arg in every]


def _keyword_places(tree: ast.Module, node: Function, lines: list[str], name: str) -> list[Span]:
    """Arguments by the parameter's name, in calls of a function of the module."""
    if node not in tree.body:
        return []
    return [
        Span(keyword.lineno - 1, keyword.col_offset)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == node.name
        for keyword in call.keywords
        if keyword.arg == name
    ]


def _free(text: str, name: str) -> str:
    """A new name that the file does not have."""
    return next(name + end for end in ENDINGS if name + end not in text)


def _replaced(lines: list[str], places: list[Span], old: str, new: str) -> list[LineChange]:
    """Lines with a name replaced at places."""
    by_line: dict[int, list[int]] = defaultdict(list)
    for place in places:
        by_line[place.line].append(place.column)
    found: list[LineChange] = []
    for line, columns in sorted(by_line.items()):
        text = lines[line]
        for column in sorted(columns, reverse=True):
            assert text.startswith(old, column), (text, column, old)
            text = text[:column] + new + text[column + len(old) :]
        found.append(LineChange(line, text))
    return found
