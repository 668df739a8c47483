"""What a file's name says about its language, and how that language writes a comment."""

from __future__ import annotations

from pathlib import PurePath

_BY_SUFFIX = {
    ".bash": "shellscript",
    ".c": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".go": "go",
    ".h": "c",
    ".hpp": "cpp",
    ".html": "html",
    ".ipynb": "python",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".jsx": "javascriptreact",
    ".kt": "kotlin",
    ".lua": "lua",
    ".md": "markdown",
    ".php": "php",
    ".py": "python",
    ".pyi": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".rst": "restructuredtext",
    ".scala": "scala",
    ".sh": "shellscript",
    ".sql": "sql",
    ".swift": "swift",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".zig": "zig",
}
_BY_NAME = {"dockerfile": "dockerfile", "makefile": "makefile"}

_HASH = frozenset(
    {"dockerfile", "makefile", "python", "ruby", "shellscript", "toml", "yaml", "plaintext"}
)
_DASHES = frozenset({"lua", "sql"})


def language_of(path: str) -> str:
    """The LSP language id for a path, "plaintext" when its name says nothing."""
    name = PurePath(path).name.lower()
    return _BY_NAME.get(name) or _BY_SUFFIX.get(PurePath(name).suffix, "plaintext")


def comment_mark(language: str) -> str:
    """What starts a comment that runs to the end of the line."""
    if language in _HASH:
        return "#"
    return "--" if language in _DASHES else "//"
