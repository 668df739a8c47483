"""The grammars of the languages that we parse, each imported when it is first needed."""

from __future__ import annotations

import importlib
from functools import cache

from tree_sitter import Language, Parser

_MODULES = {
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "go": ("tree_sitter_go", "language"),
    "html": ("tree_sitter_html", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "javascriptreact": ("tree_sitter_javascript", "language"),
    "json": ("tree_sitter_json", "language"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
}
LANGUAGES = frozenset(_MODULES)
"""LSP language ids that have a grammar."""


@cache
def grammar_of(language: str) -> Language | None:
    """The grammar of an LSP language id, None for a language that we do not parse."""
    if language not in _MODULES:
        return None
    module, function = _MODULES[language]
    pointer: object = getattr(importlib.import_module(module), function)()
    return Language(pointer)


def parser_of(language: str) -> Parser | None:
    """A parser of one's own; parsers keep state and must not be shared between threads."""
    grammar = grammar_of(language)
    return None if grammar is None else Parser(grammar)
