"""What files define and import, in every language, and where an imported module is looked for."""

from __future__ import annotations

import pytest
from dg_lsp.context.imports import ANY, MODULE
from dg_lsp.context.modules import candidates
from dg_lsp.context.outline import MOST_DEFINITIONS, MOST_MEMBERS, outline_of

DEFINED = [
    ("python", "N: int = 3\n", {"N": "N: int = 3"}),
    (
        "python",
        "@dec\ndef f(a,\n      b=1) -> int:\n    return a\n",
        {"f": "def f(a,\n      b=1) -> int: ..."},
    ),
    (
        "python",
        "class A(B):\n    '''Doc.'''\n    x: int = 1\n    @cache\n    def f(self):\n        pass\n",
        {"A": "class A(B):\n    x: int = 1\n    def f(self): ..."},
    ),
    ("python", "if a:\n    def g(): pass\n", {"g": "def g(): ..."}),
    (
        "typescript",
        "export function h(a: I): U { return 1; }\n",
        {"h": "function h(a: I): U { ... }"},
    ),
    ("typescript", "type U = string;\n", {"U": "type U = string;"}),
    (
        "typescript",
        "export interface I {\n  a: string;\n  m(): void\n}\n",
        {"I": "interface I {\n  a: string\n  m(): void\n}"},
    ),
    (
        "javascript",
        "const f = (a) => {\n  return a;\n};\n",
        {"f": "const f = (a) => {\n  return a;\n};"},
    ),
    ("go", "type S struct {\n\tA int\n}\n", {"S": "type S struct {\n\tA int\n}"}),
    (
        "go",
        "func (s *S) M(a int) error { return nil }\n",
        {"M": "func (s *S) M(a int) error { ... }"},
    ),
    ("rust", "pub fn h<T>(x: T) -> i32 { 1 }\n", {"h": "pub fn h<T>(x: T) -> i32 { ... }"}),
    ("rust", "pub struct S {\n    a: i32,\n}\n", {"S": "pub struct S {\n    a: i32\n}"}),
    ("c", "int f(int a, char *b) { return 1; }\n", {"f": "int f(int a, char *b) { ... }"}),
    ("c", "#define M 3\n", {"M": "#define M 3"}),
    (
        "cpp",
        "namespace n {\nclass A : public B {\n public:\n  int f(int a) const;\n};\n}\n",
        {"A": "class A : public B {\n  int f(int a) const;\n}"},
    ),
    (
        "java",
        "public class A {\n    private int x;\n    public A(int x) { }\n}\n",
        {"A": "public class A {\n    private int x;\n    public A(int x) { ... }\n}"},
    ),
    (
        "ruby",
        "module M\n  class A < B\n    def f(a)\n      1\n    end\n  end\nend\n",
        {"A": "class A < B\n  def f(a)\nend"},
    ),
    ("lua", "function f() end\n", {}),
]


@pytest.mark.parametrize(("language", "text", "defined"), DEFINED)
def test_a_definition_is_shown_without_bodies(
    language: str, text: str, defined: dict[str, str]
) -> None:
    found = outline_of(text, language).definitions
    assert {definition.name: definition.text for definition in found} == defined


IMPORTED = [
    ("python", "import a.b as c\n", [("a.b", "c", MODULE)]),
    ("python", "import a.b\n", [("a.b", "a.b", MODULE)]),
    ("python", "from .x import y as z\n", [(".x", "z", "y"), (".x.y", "z", MODULE)]),
    ("python", "from . import m\n", [(".", "m", "m"), (".m", "m", MODULE)]),
    ("python", "from a import *\n", [("a", "", ANY)]),
    ("python", "try:\n    import a\nexcept E:\n    pass\n", [("a", "a", MODULE)]),
    ("typescript", "import a, {b as c} from './x';\n", [("./x", "a", MODULE), ("./x", "c", "b")]),
    ("typescript", "import * as n from '../y';\n", [("../y", "n", MODULE)]),
    ("typescript", "import type {T} from '@/z';\n", [("@/z", "T", "T")]),
    ("javascript", "const {r} = require('./r');\n", [("./r", "r", "r")]),
    (
        "go",
        'import (\n\t"fmt"\n\tu "e.com/m/util"\n)\n',
        [("fmt", "fmt", MODULE), ("e.com/m/util", "u", MODULE)],
    ),
    ("go", 'import "e.com/m/util"\n', [("e.com/m/util", "util", MODULE)]),
    (
        "rust",
        "use crate::a::{C, D as E};\n",
        [
            ("crate::a", "C", "C"),
            ("crate::a::C", "C", MODULE),
            ("crate::a", "E", "D"),
            ("crate::a::D", "E", MODULE),
        ],
    ),
    ("rust", "mod g;\n", [("self::g", "g", MODULE)]),
    ("c", '#include "a/b.h"\n#include <stdio.h>\n', [("a/b.h", "", ANY)]),
    ("java", "import c.d.E;\nimport static c.d.F.g;\n", [("c.d.E", "E", "E"), ("c.d.F", "g", "g")]),
    ("ruby", "require 'a/b'\nrequire_relative '../c'\n", [("a/b", "", ANY), ("./../c", "", ANY)]),
    ("python", "def f():\n    import a\n", []),
]


@pytest.mark.parametrize(("language", "text", "imported"), IMPORTED)
def test_an_import_says_what_names_it_brings(
    language: str, text: str, imported: list[tuple[str, str, str]]
) -> None:
    found = outline_of(text, language).imports
    assert [(i.module, bound, name) for i in found for bound, name in i.names] == imported


PLACES = [
    ("python", "a.b", "a/b.py"),
    ("python", "a.b", "a/b/__init__.py"),
    ("python", ".x", "/p/q/x.py"),
    ("python", "..x.y", "/p/x/y.py"),
    ("python", ".", "/p/q/__init__.py"),
    ("typescript", "./x", "/p/q/x.ts"),
    ("typescript", "./x.js", "/p/q/x.ts"),
    ("typescript", "../x", "/p/x/index.tsx"),
    ("typescript", "@/x", "x.tsx"),
    ("javascript", "./x", "/p/q/x.js"),
    ("go", "e.com/m/util", "m/util/"),
    ("rust", "crate::a::b", "src/a/b.rs"),
    ("rust", "self::g", "/p/q/me/g.rs"),
    ("rust", "super", "/p/q/mod.rs"),
    ("c", "a/b.h", "/p/q/a/b.h"),
    ("cpp", "../b.h", "/p/b.h"),
    ("java", "c.d.E", "c/d/E.java"),
    ("ruby", "a/b", "a/b.rb"),
    ("ruby", "./../c", "/p/c.rb"),
]


@pytest.mark.parametrize(("language", "module", "place"), PLACES)
def test_a_module_is_looked_for_where_its_language_has_it(
    language: str, module: str, place: str
) -> None:
    assert place in candidates(module, language, "/p/q/me.rs")


def test_a_package_of_others_is_not_looked_for() -> None:
    assert candidates("react", "typescript", "/p/q/me.ts") == []


def test_an_outline_is_bounded() -> None:
    many = "".join(f"def f{n}(): pass\n" for n in range(MOST_DEFINITIONS + 50))
    assert len(outline_of(many, "python").definitions) == MOST_DEFINITIONS
    wide = "class A:\n" + "".join(f"    def f{n}(self): pass\n" for n in range(MOST_MEMBERS + 9))
    (found,) = outline_of(wide, "python").definitions
    assert len(found.text.split("\n")) == 1 + MOST_MEMBERS
