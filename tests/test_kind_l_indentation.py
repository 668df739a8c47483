"""Kind L: a suggestion is indented as its file is, by tabs or by blanks."""

from __future__ import annotations

import pytest

from tests import server_fixtures
from tests.kinds import Proposed, suggestions
from tests.server_fixtures import Clients

tiny, clients = server_fixtures.tiny, server_fixtures.clients
pytestmark = pytest.mark.asyncio

FILES = {
    # language, document, answer, what is suggested
    "two blanks": (
        *("javascript", "if (a) {\n  b();\n}\nif (c) {\n  ‸\n}\n"),
        *("if (d) {\n    e();\n  }", "if (d) {\n    e();\n  }"),
    ),
    "four blanks": (
        *("python", "def f():\n    a()\n\n\ndef g(x):\n    ‸\n"),
        *("if x:\n        return x", "if x:\n        return x"),
    ),
    "eight blanks": (
        *("c", "int f(void) {\n        return 1;\n}\nint g(int a) {\n        ‸\n}\n"),
        *("if (a)\n                return 2;", "if (a)\n                return 2;"),
    ),
    "tabs, said with blanks": (
        *("python", "def f():\n\ta()\n\n\ndef g(x):\n\t‸\n"),
        *("if x:\n        return x", "if x:\n\t\treturn x"),
    ),
    "tabs, said with tabs": (
        *("python", "def f():\n\ta()\n\n\ndef g(x, y):\n\t‸\n"),
        *("if x:\n\t\treturn x", "if x:\n\t\treturn x"),
    ),
    "blanks, said with tabs": (
        *("python", "def f():\n    a()\n\n\ndef g(x, y):\n    ‸\n"),
        *("if x:\n\t\treturn x", "if x:\n        return x"),
    ),
    "Go has tabs": (
        *("go", "package a\n\nfunc f(a int) int {\n\t‸\n}\n"),
        *("if a > 1 {\n        return 1\n    }", "if a > 1 {\n\t\treturn 1\n\t}"),
    ),
    "a Makefile's recipe": ("makefile", "all:\n‸\n", "    cc -o a a.c", "\tcc -o a a.c"),
    "YAML has blanks": ("yaml", "a:\n  b: 1\nc:\n‸\n", "  d: 2", "  d: 2"),
    "a blank line without indentation": (
        "python",
        "def f(a):\n‸\n",
        "    return a",
        "    return a",
    ),
    "mixed, the commoner counts": (
        *("python", "def f():\n\ta()\n\tb()\n\n\ndef h():\n    c()\n\n\ndef g(x):\n\t‸\n"),
        *("if x:\n        return x", "if x:\n\t\treturn x"),
    ),
}


async def test_l_a_suggestion_is_indented_as_its_file_is(clients: Clients) -> None:
    cases = [Proposed(language, text, answer) for language, text, answer, _ in FILES.values()]
    found = dict(zip(FILES, await suggestions(clients, cases), strict=True))
    assert found == {name: given[3] for name, given in FILES.items()}
