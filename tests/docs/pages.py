"""Commands that README.md and the pages of docs/ tell people to type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

OTHER_LANGUAGES = {"lua", "elisp", "toml", "json", "python", "text"}
"""Blocks in them hold no command; every other language that a block names is a shell's."""
PROGRAMS = (
    *("cd", "code", "cp", "curl", "dg-lsp", "docker", "echo", "emacs", "export", "git", "hx", "ln"),
    *("make", "mkdir", "node", "npm", "npx", "nvim", "pip", "pipx", "python", "python3", "ray"),
    *("ssh", "sudo", "systemctl", "uv", "vllm"),
)
"""What begins a command in a block that names no language."""

_WITHOUT_COMMENT = re.compile(r"""(?:"[^"]*"|'[^']*'|(?<=\S)#|[^#])*""")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*(\S*)")
_VARIABLES = re.compile(r"^(?:[A-Z_]+=\S* +)+")


class Command(NamedTuple):
    """One command as it stands on a page, without its comment."""

    page: str
    text: str


class Block(NamedTuple):
    """A code block; `language` is None for an indented one."""

    language: str | None
    lines: list[str]


def blocks(page: str) -> Iterator[Block]:
    """The code blocks of a Markdown page."""
    fence, indented, after_blank = "", False, True
    block = Block(None, [])
    for line in page.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2]:
                yield block
                fence = ""
            else:
                block.lines.append(line)
            after_blank = False
            continue
        if line.startswith("    ") and line.strip() and (indented or after_blank):
            if not indented:
                block = Block(None, [])
            indented = True
            block.lines.append(line[4:])
            continue
        if indented and line.strip():
            yield block
            indented = False
        if found:
            fence = found[1]
            block = Block(found[2], [])
        after_blank = not line.strip()
    if fence or indented:
        yield block


def commands_of(block: Block) -> Iterator[str]:
    """The commands in a block: continued lines joined, prompts and comments left out."""
    if block.language in OTHER_LANGUAGES:
        return
    for line in "\n".join(block.lines).replace("\\\n", " ").split("\n"):
        prompted = line.lstrip().startswith("$ ")
        bare = line.strip().removeprefix("$ ")
        if found := _WITHOUT_COMMENT.match(bare):
            bare = found[0].strip()
        first = _VARIABLES.sub("", bare).partition(" ")[0]
        is_command = first in PROGRAMS or first.startswith((".venv/bin/", "./", "scripts/"))
        if bare and (block.language != "" or prompted or is_command):
            yield re.sub(r"\s+", " ", bare)


def commands() -> list[Command]:
    """Every command of every page, each once a page."""
    found = {
        Command(str(path.relative_to(ROOT)), text)
        for path in PAGES
        for block in blocks(path.read_text("utf-8"))
        for text in commands_of(block)
    }
    return sorted(found)
