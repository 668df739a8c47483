"""One document in a server process, seen from both ends: the editor's and the model's."""

from __future__ import annotations

from typing import Any

from tests.wire_client import WireClient

PLACE = "file:///project/text.txt"


class Page:
    """A document that is edited and asked about, and the text that the model was shown for it."""

    def __init__(self, client: WireClient, uri: str = PLACE, language: str = "plaintext") -> None:
        self.client = client
        self.uri = uri
        self.language = language
        self.version = 0

    def open(self, text: str) -> None:
        """Open it, or open it anew with another text."""
        if self.version:
            self.client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})
        self.version += 1
        document = {
            "uri": self.uri,
            "languageId": self.language,
            "version": self.version,
            "text": text,
        }
        self.client.notify("textDocument/didOpen", {"textDocument": document})

    def edit(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a range."""
        self.version += 1
        places = [{"line": line, "character": character} for line, character in (start, end)]
        change = {"range": dict(zip(("start", "end"), places, strict=True)), "text": text}
        self.client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self.uri, "version": self.version},
                "contentChanges": [change],
            },
        )

    def ask(self, line: int, character: int, kind: int = 1) -> int:
        """Ask for a suggestion; the request's id."""
        return self.client.ask_completion(line, character, kind=kind, uri=self.uri)

    async def items(self, line: int, character: int, kind: int = 1) -> list[dict[str, Any]]:
        """What is suggested."""
        return (await self.client.answer(self.ask(line, character, kind)))["result"]["items"]

    async def shown(self, line: int, character: int) -> tuple[str, dict[str, int]]:
        """What the model was shown, text after the cursor first, and where its answer stands."""
        (item, *_) = await self.items(line, character)
        jobs = (await self.client.request("test/shown", {}))["result"]
        return jobs[-1]["prompt"], item["range"]["start"]


def units(text: str, encoding: str) -> int:
    """Code units of `text`."""
    if encoding == "utf-32":
        return len(text)
    return len(text.encode(encoding + "-le" if encoding == "utf-16" else encoding)) // (
        2 if encoding == "utf-16" else 1
    )
