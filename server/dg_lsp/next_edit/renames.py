"""The uses that are left of a name that an edit renamed, where Python's scopes make it certain.

Certain means: the edit took the name's only binding away, so the uses that are left mean nothing;
and the new name meant nothing in those places before. Or, where uses were renamed and not the
binding: two of them at least, and the new name is bound nowhere.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tree_sitter import Node, Tree

from dg_lsp.lines import Lines
from dg_lsp.next_edit.history import Edited
from dg_lsp.next_edit.names import (
    Occurrence,
    Role,
    binder_of,
    holds,
    occurrences,
    owner_of,
    scopes_around,
)
from dg_lsp.next_edit.tokens import swaps_between

_BUILTINS = frozenset(dir(builtins))
MOST_RENAMES = 4
"""That are looked into, of the last ones."""
_OPEN = frozenset({"module", "class_definition"})
"""Scopes whose names are known elsewhere."""


class Renamed(NamedTuple):
    """One name that became another at a place of the newest version."""

    old: str
    new: str
    line: int
    column: int


class Spot(NamedTuple):
    """A place where the old name still stands, in code points."""

    line: int
    column: int


class Rename(NamedTuple):
    """A name, its new one, and where the old one is left over."""

    old: str
    new: str
    spots: tuple[Spot, ...]
    """Nowhere, when it is not certain or nothing is left."""
    line: int
    """Where the name was changed last."""
    is_local: bool
    """Whether one of the names is a function's own: then its scope says what the rename is for,
    and the same tokens elsewhere are something else."""


def renamed_in(edit: Edited, lines: Lines) -> list[Renamed]:
    """Names that one edit gave other names; none where it changed anything else."""
    swaps = swaps_between(edit.old, edit.new(lines)) or []
    if any(swap.names is None for swap in swaps):
        return []
    return [
        Renamed(*names, edit.first + swap.line, swap.column)
        for swap in swaps
        if (names := swap.names) is not None
    ]


def renames_of(tree: Tree, raw: bytes, lines: Lines, history: Sequence[Edited]) -> list[Rename]:
    """What the last renames leave to be done, the newest first.

    `tree` is that of `raw`, the text with `\\n` as its line breaks.
    """
    everywhere = [one for edit in history for one in renamed_in(edit, lines)]
    edited = {line for edit in history for line in range(edit.first, edit.end)}
    found: list[Rename] = []
    for old, new in list(dict.fromkeys((one.old, one.new) for one in everywhere))[:MOST_RENAMES]:
        done = [one for one in everywhere if (one.old, one.new) == (old, new)]
        places = _Places(tree, raw, lines, old, new)
        left = (spot for spot in places.left_over(done) if spot.line not in edited)
        found.append(Rename(old, new, tuple(left), done[0].line, places.is_local(done)))
    return found


class _Places:
    """The occurrences of the two names in the newest version."""

    def __init__(self, tree: Tree, raw: bytes, lines: Lines, old: str, new: str) -> None:
        self.lines = lines
        self.olds = occurrences(tree, raw, old)
        self.news = occurrences(tree, raw, new)
        self.new = new
        self.is_clear = all(o.role is not Role.UNCLEAR for o in (*self.olds, *self.news))
        self.binds_old = {o.scope.id for o in self.olds if o.is_bind}
        self.binds_new = {o.scope.id for o in self.news if o.is_bind}

    def left_over(self, done: Sequence[Renamed]) -> list[Spot]:
        """Where the old name stands and the new one should, after it was renamed somewhere."""
        if not self.is_clear:
            return []
        renamed = {(one.line, one.column) for one in done}
        here = [o for o in self.news if self._spot(o) in renamed]
        binds = [o for o in here if o.is_bind]
        if any(o.role is Role.IMPORT for o in binds):
            return []  # something else is imported now
        if binds:
            return self._after_binding(binds[0], renamed) if _are_of_one(binds) else []
        attributes = [o for o in here if o.role is Role.ATTRIBUTE and _is_set_on_self(o.node)]
        if attributes:
            return self._after_attribute(attributes[0], renamed) if len(attributes) == 1 else []
        if len({o.line for o in here}) > 1:
            return self._after_uses(here, renamed)
        return []

    def is_local(self, done: Sequence[Renamed]) -> bool:
        """Whether a function binds what was renamed, by its old or its new name."""
        renamed = {(one.line, one.column) for one in done}
        for one in (o for o in self.news if self._spot(o) in renamed):
            if one.is_bind:
                binders: list[Node | None] = [one.scope]
            elif one.role is Role.USE:
                binders = [binder_of(one, self.binds_old), binder_of(one, self.binds_new)]
            else:
                binders = []
            if any(b is not None and b.type not in _OPEN for b in binders):
                return True
        return False

    def _after_binding(self, bind: Occurrence, renamed: set[tuple[int, int]]) -> list[Spot]:
        scope = bind.scope
        again = [o for o in self.olds if o.is_bind and o.scope.id == scope.id]
        body: Node | None = None
        if again and bind.role is Role.PARAMETER:
            if any(o.node.start_byte < bind.node.start_byte for o in again):
                return []
        elif again:
            body = _block_of(bind.node)
            if body is None or any(holds(body, o.node) for o in again):
                return []
        uses = [o for o in self.olds if self._means(o, scope) or (o in again and body is None)]
        if body is not None:
            uses = [o for o in uses if holds(body, o.node)]
        if scope.type == "class_definition":
            uses += self._on_self(scope)
        if bind.role is Role.PARAMETER:
            uses += self._keywords(scope)
        return [] if self._clashes(scope, body or scope, renamed) else self._spots(uses)

    def _after_attribute(self, bind: Occurrence, renamed: set[tuple[int, int]]) -> list[Spot]:
        """Of `self.x = …`: the attribute's uses in its class, which sets it nowhere else."""
        owner = owner_of(bind.node)
        if owner is None or _has_bases(owner):
            return []
        uses = self._on_self(owner)
        inside = [o for o in self.olds if o.is_bind and o.scope.id == owner.id]
        if inside or any(_is_set_on_self(o.node) for o in uses):
            return []
        others = [o for o in self.news if holds(owner, o.node) and o.role is Role.ATTRIBUTE]
        if any(_on_own_object(o.node) and self._spot(o) not in renamed for o in others):
            return []
        return self._spots(uses)

    def _after_uses(self, here: Sequence[Occurrence], renamed: set[tuple[int, int]]) -> list[Spot]:
        """The binding and the uses of a name that was renamed at several uses."""
        if self.new in _BUILTINS or any(o.role is not Role.USE for o in here):
            return []
        if any(binder_of(o, self.binds_new) is not None for o in here):
            return []
        binder = binder_of(here[0], self.binds_old)
        if binder is None or binder.type == "class_definition":
            return []
        uses = [o for o in self.olds if (b := binder_of(o, self.binds_old)) and b.id == binder.id]
        wanted = [o for o in uses if o.role is Role.USE or o.is_bind]
        return [] if self._clashes(binder, binder, renamed) else self._spots(wanted)

    def _means(self, use: Occurrence, scope: Node) -> bool:
        """Whether a use had its meaning from a scope that no longer binds the name."""
        if use.role is not Role.USE:
            return False
        binder = binder_of(use, self.binds_old | {scope.id})
        return binder is not None and binder.id == scope.id

    def _clashes(self, scope: Node, region: Node, renamed: set[tuple[int, int]]) -> bool:
        """Whether the new name stood for something else where it is wanted."""
        return any(
            (o.is_bind or o.role is Role.USE)
            and holds(region, o.node)
            and self._spot(o) not in renamed
            and any(s.id == scope.id for s in scopes_around(o))
            for o in self.news
        )

    def _on_self(self, owner: Node) -> list[Occurrence]:
        """Attributes of this name that are looked up on `self` or `cls` in a class."""
        if _has_bases(owner):
            return []
        return [
            o
            for o in self.olds
            if o.role is Role.ATTRIBUTE
            and holds(owner, o.node)
            and _on_own_object(o.node)
            and (held := owner_of(o.node)) is not None
            and held.id == owner.id
        ]

    def _keywords(self, function: Node) -> list[Occurrence]:
        """Arguments by the name of a parameter, in calls of a function that is known by name."""
        name = function.child_by_field_name("name")
        if name is None or name.text is None or owner_of(name) is not None:
            return []
        return [o for o in self.olds if o.role is Role.KEYWORD and _callee_of(o.node) == name.text]

    def _spots(self, uses: Iterable[Occurrence]) -> list[Spot]:
        return sorted({self._spot(o) for o in uses})

    def _spot(self, occurrence: Occurrence) -> Spot:
        point = occurrence.node.start_point
        raw = self.lines[point.row].encode()[: point.column]
        return Spot(point.row, len(raw.decode(errors="ignore")))


def _are_of_one(binds: Sequence[Occurrence]) -> bool:
    """Whether bindings are of one scope."""
    return len({o.scope.id for o in binds}) == 1


def _block_of(bind: Node) -> Node | None:
    """The body that a loop's or a `with`'s own name is for."""
    node = bind
    while node.parent is not None and node.type != "block":
        node = node.parent
        if node.type in ("for_statement", "with_statement", "except_clause"):
            body = node.child_by_field_name("body")
            return body or next((c for c in node.children if c.type == "block"), None)
    return None


def _has_bases(owner: Node) -> bool:
    """Whether a class may have attributes from elsewhere."""
    bases = owner.child_by_field_name("superclasses")
    return bases is not None and any(base.text != b"object" for base in bases.named_children)


def _on_own_object(node: Node) -> bool:
    around = node.parent
    held = around.child_by_field_name("object") if around is not None else None
    return held is not None and held.text in (b"self", b"cls")


def _is_set_on_self(node: Node) -> bool:
    """Whether an attribute's name stands in `self.x = …` or `self.x: T = …`."""
    around = node.parent
    outer = around.parent if around is not None else None
    if around is None or outer is None or not _on_own_object(node):
        return False
    if outer.type != "assignment":
        return False
    left = outer.child_by_field_name("left")
    return left is not None and left.id == around.id


def _callee_of(node: Node) -> bytes | None:
    """The name of the function in whose call an argument stands."""
    call: Node | None = node
    while call is not None and call.type != "call":
        call = call.parent
    function = call.child_by_field_name("function") if call is not None else None
    return function.text if function is not None and function.type == "identifier" else None
