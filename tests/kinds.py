"""One document in a server process, seen from both ends: the editor's and the model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.server_fixtures import Clients
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


class Proposed(NamedTuple):
    """A document whose cursor is marked by ‸, and what the model says there."""

    language: str
    marked: str
    answer: str

    @property
    def text(self) -> str:
        """The document."""
        return self.marked.replace("‸", "")

    @property
    def cursor(self) -> tuple[int, int]:
        """Its cursor; the text is ASCII, so columns are units."""
        before = self.marked[: self.marked.index("‸")]
        return before.count("\n"), len(before) - (before.rfind("\n") + 1)

    def accepted(self, inserted: str) -> str:
        """The document once the user has taken a suggestion."""
        return self.marked.replace("‸", inserted)


async def suggestions(clients: Clients, cases: Sequence[Proposed]) -> list[str]:
    """What a server process suggests for each case, empty where it says nothing."""
    assert len({case.marked for case in cases}) == len(cases), "what is asked twice is remembered"
    client = await clients.process(*(case.answer for case in cases))
    await client.initialize(initializationOptions={"prefetch": False})
    found: list[str] = []
    for number, case in enumerate(cases):
        page = Page(client, f"file:///project/case{number}.txt", case.language)
        page.open(case.text)
        items = await page.items(*case.cursor, kind=2)
        found.append(items[0]["insertText"] if items else "")
    return found


def units(text: str, encoding: str) -> int:
    """Code units of `text`."""
    if encoding == "utf-32":
        return len(text)
    return len(text.encode(encoding + "-le" if encoding == "utf-16" else encoding)) // (
        2 if encoding == "utf-16" else 1
    )
