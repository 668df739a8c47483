"""Answers as text: for eyes in a terminal, with markers in a pipe, as one object for scripts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from dg_lsp.completion import Completion

CONTEXT_LINES = 3
INSERTED = "bold green"
OPEN_MARK, CLOSE_MARK = "«", "»"

_PICTURES = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys(range(127, 160), "�"),
}
"""What is printed in place of control characters."""


class Surroundings(NamedTuple):
    """The lines around a cursor, cut at it."""

    before: str
    after: str


def harmless(text: str) -> str:
    """Text without control characters: neither a file nor a model may drive the terminal."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_PICTURES)


def surroundings(text: str, offset: int, lines: int = CONTEXT_LINES) -> Surroundings:
    """The cursor's line and up to `lines` whole lines on either side of it."""
    before = harmless(text[:offset]).split("\n")[-lines - 1 :]
    after = harmless(text[offset:]).split("\n")[: lines + 1]
    return Surroundings("\n".join(before), "\n".join(after).rstrip("\n"))


def filled(text: str, offset: int, insert: str, *, coloured: bool) -> Text:
    """The surrounding lines with the inserted part marked, by colour or by «…»."""
    around = surroundings(text, offset)
    marked = Text(harmless(insert), style=INSERTED if insert else "")
    if not coloured:
        marked = Text(f"{OPEN_MARK}{harmless(insert)}{CLOSE_MARK}")
    return Text.assemble(around.before, marked, around.after)


def console() -> Console:
    """Standard output, with nothing coloured but what we colour."""
    return Console(highlight=False, markup=False, emoji=False)


def put(target: Console, text: Text) -> None:
    """Print without wrapping; tabs stay tabs where the reader is a program."""
    if target.is_terminal:
        target.print(text, soft_wrap=True)
    else:
        target.file.write(f"{text.plain}\n")


def dimmed(text: str) -> Text:
    """Text that stands back."""
    return Text(text, style="dim")


def can_colour(console: Console) -> bool:
    """Whether a colour would be seen; otherwise the markers are printed."""
    return console.is_terminal and console.color_system is not None and not console.no_color


def figures(completion: Completion, total_ms: float) -> str:
    """One line: how the answer was made."""
    return (
        f"{_count(completion.steps, 'step')}, {_count(completion.forwards, 'forward')}, "
        f"{total_ms:.0f} ms, confidence {completion.confidence:.2f}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def completion_object(
    completion: Completion, line: int, column: int, ms: Mapping[str, float]
) -> dict[str, object]:
    """What --json prints; the keys are a promise to scripts."""
    return {
        "insert": completion.insert,
        "line": line,
        "column": column,
        "done": str(completion.done),
        "steps": completion.steps,
        "forwards": completion.forwards,
        "confidence": completion.confidence,
        "ms": {stage: round(value, 3) for stage, value in ms.items()},
    }


def unified_diff(path: str, old: str, new: str) -> str:
    """A diff that `patch -p1` and `git apply` take, byte for byte; empty when nothing changed."""
    old_lines, new_lines = _keep_ends(old), _keep_ends(new)
    name = path.removeprefix("./").lstrip("/")
    parts: list[str] = []
    for line in difflib.unified_diff(old_lines, new_lines, f"a/{name}", f"b/{name}"):
        parts.append(line)
        if not line.endswith("\n"):
            parts.append("\n\\ No newline at end of file\n")
    return "".join(parts)


def _keep_ends(text: str) -> list[str]:
    """Lines split at line feeds only, as diff and patch do."""
    pieces = text.split("\n")
    lines = [f"{piece}\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def coloured_diff(diff: str) -> Text:
    """The diff for a terminal."""
    styles = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}
    lines = diff.splitlines(keepends=True)
    return Text.assemble(*((harmless(line), styles.get(line[:1], "")) for line in lines))
