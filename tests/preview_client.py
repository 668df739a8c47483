"""The editor's side of edits that are shown first: a buffer, and the text that it should hold."""

from __future__ import annotations

import random
from typing import Any

from tests.wire_client import DOCUMENT, WireClient


def position(text: str, offset: int) -> dict[str, int]:
    """The position of an offset, in UTF-16."""
    line = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    return {"line": line, "character": len(text[start:offset].encode("utf-16-le")) // 2}


def offset_of(text: str, place: dict[str, int]) -> int:
    """The offset of a position in UTF-16."""
    lines = text.split("\n")
    units = lines[place["line"]].encode("utf-16-le")[: 2 * place["character"]]
    return sum(len(line) + 1 for line in lines[: place["line"]]) + len(units.decode("utf-16-le"))


class Buffer:
    """A document in three parts: what is edited is the one in the middle, whole lines."""

    def __init__(self, client: WireClient, before: str, old: str, after: str) -> None:
        self.client = client
        self.before, self.old, self.after = before, old, after
        self.version = 1
        client.open(self.text)

    @property
    def text(self) -> str:
        return self.before + self.old + self.after

    @property
    def range(self) -> dict[str, Any]:
        """Where the middle is now."""
        start, end = len(self.before), len(self.before) + len(self.old)
        return {"start": position(self.text, start), "end": position(self.text, end)}

    def edit(self, **arguments: Any) -> int:
        """Ask for a preview of the middle; the request's id."""
        argument = {
            "uri": DOCUMENT,
            "range": self.range,
            "instruction": "change it",
            "version": self.version,
            "preview": True,
            **arguments,
        }
        return self.client.send(
            "workspace/executeCommand", {"command": "dg.edit", "arguments": [argument]}
        )

    def type_before(self, start: int, end: int, text: str) -> None:
        """Replace characters of the part before; its last line break must stay."""
        self._send(start, end, text)
        self.before = self.before[:start] + text + self.before[end:]

    def type_after(self, start: int, end: int, text: str) -> None:
        """Replace characters of the part behind; its first line break must stay."""
        shift = len(self.before) + len(self.old)
        self._send(shift + start, shift + end, text)
        self.after = self.after[:start] + text + self.after[end:]

    def type_inside(self, offset: int, text: str) -> None:
        start = len(self.before) + offset
        self._send(start, start, text)
        self.old = self.old[:offset] + text + self.old[offset:]

    def type_somewhere_else(self, chance: random.Random) -> None:
        """Type or delete at random, but not in the middle."""
        text = chance.choice(["x", "", "\n", "é😀", "import a\n", "    y = 1\n\n"])
        if chance.random() < 0.5:
            last = max(len(self.before) - 1, 0)
            start = chance.randint(0, last)
            end = min(start + chance.choice([0, 0, 1, 5]), last)
            self.type_before(start, end, text)
        else:
            start = chance.randint(min(1, len(self.after)), len(self.after))
            end = min(start + chance.choice([0, 0, 1, 5]), len(self.after))
            self.type_after(start, end, text)

    def applied(self, params: dict[str, Any]) -> str:
        """The text after a workspace/applyEdit for this version of one text edit."""
        (change,) = params["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": DOCUMENT, "version": self.version}
        (edit,) = change["edits"]
        text = self.text
        start = offset_of(text, edit["range"]["start"])
        end = offset_of(text, edit["range"]["end"])
        return text[:start] + edit["newText"] + text[end:]

    def _send(self, start: int, end: int, text: str) -> None:
        self.version += 1
        place = {"start": position(self.text, start), "end": position(self.text, end)}
        self.client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": DOCUMENT, "version": self.version},
                "contentChanges": [{"range": place, "text": text}],
            },
        )


async def previewed(client: WireClient, true: Any) -> dict[str, Any]:
    """The first preview of which something is true, from now or before."""

    def found() -> list[dict[str, Any]]:
        return [p for p in client.said("dg/editPreview") if true(p)]

    await client.until(lambda: bool(found()))
    return found()[0]
